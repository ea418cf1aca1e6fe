import { computed, signal } from '@preact/signals';

/** The view that the page shows, from the address after `#`: `#/pod/prod/shop/db-0`, `#/history?pod=db-0`. */
export interface Route {
  /** The first element is the view's name. Empty: the overview. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener('hashchange', () => {
  hash.value = location.hash;
});

/** Never throws: a shared address may have been cut off within a character. */
const decoded = (part: string): string =>
  new URLSearchParams(`part=${part.replaceAll('+', '%2B')}`).get('part') ?? '';

export const route = computed<Route>(() => {
  const [path = '', query = ''] = hash.value.replace(/^#\/?/, '').split('?');
  return {
    path: path.split('/').filter(Boolean).map(decoded),
    query: new URLSearchParams(query),
  };
});

export function href(path: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''));
  const text = parameters.size > 0 ? `?${parameters}` : '';
  return `#/${path.map(encodeURIComponent).join('/')}${text}`;
}

/** Changes the query of the current view's address without an entry in the browser's history. */
export function ask(query: Readonly<Record<string, string>>): void {
  const merged = { ...Object.fromEntries(route.value.query), ...query };
  history.replaceState(null, '', href(route.value.path, merged));
  hash.value = location.hash;
}

/** Returns the function by which a field changes one parameter of the query. */
export const querySetter = (name: string) => (value: string) => ask({ [name]: value });
