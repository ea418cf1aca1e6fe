import { computed, signal } from '@preact/signals';

/** What the page shows, as its address says after `#`: `#/pod/prod/shop/db-0`, `#/history?pod=db-0`. */
export interface Route {
  /** The first is the view's name; empty for the overview. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener('hashchange', () => {
  hash.value = location.hash;
});

export const route = computed<Route>(() => {
  const [path = '', query = ''] = hash.value.replace(/^#\/?/, '').split('?');
  return {
    path: path.split('/').filter(Boolean).map(decodeURIComponent),
    query: new URLSearchParams(query),
  };
});

/** The address of a view. */
export function href(path: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''));
  const text = asked.size > 0 ? `?${asked}` : '';
  return `#/${path.map(encodeURIComponent).join('/')}${text}`;
}

/** Changes what the address asks of the view that is shown, without a step in the browser's history. */
export function ask(query: Readonly<Record<string, string>>): void {
  const merged = { ...Object.fromEntries(route.value.query), ...query };
  history.replaceState(null, '', href(route.value.path, merged));
  hash.value = location.hash;
}
