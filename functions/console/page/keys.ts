import { showMessage } from './acts.ts';

const KEYS: Readonly<Record<string, () => void>> = {
  '/': () => focusOn(document.querySelector('main input')),
  j: () => moveBy(1),
  k: () => moveBy(-1),
  '?': () =>
    showMessage('Keys: / enters the search, Escape leaves it, j and k go to the next and previous row.'),
};

/** The last element of the view that had the focus, and those around it, from the inside. Empty: the pointer left it. */
let around: readonly Element[] = [];

/** Listens to the keys of the page. Fields and dialogs keep theirs. */
export function listenToKeys(): void {
  document.addEventListener('pointerdown', ({ target }) => {
    if (!(target instanceof Element && target.closest('dialog'))) around = [];
  });
  document.addEventListener('focusin', (event) => {
    const path = event.composedPath() as Element[];
    const page = path.findIndex((element) => element.className === 'page');
    if (page >= 0) around = path.slice(0, page + 1);
  });
  new MutationObserver(keepFocus).observe(document.body, { childList: true, subtree: true });
  document.addEventListener('keydown', (event) => {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    const field = target instanceof HTMLElement ? target.closest('input, select, textarea, dialog') : null;
    if (field instanceof HTMLInputElement && key === 'Escape') field.blur();
    if (field || ctrlKey || metaKey || altKey || !Object.hasOwn(KEYS, key)) return;
    event.preventDefault();
    KEYS[key]?.();
  });
}

/** An act can remove its own button: what is left beside it has the focus then, and not the top of the page. */
function keepFocus(): void {
  if (document.activeElement !== document.body || around[0]?.isConnected !== false) return;
  const beside = around.find((element) => element.isConnected && element.querySelector(FOCUSABLE));
  focusOn(beside?.querySelector(FOCUSABLE));
}

const FOCUSABLE = 'a, button:enabled, h1';

const focusOn = (element: Element | null | undefined): void => {
  if (element instanceof HTMLElement) element.focus();
};

/** Focuses the first link of another row, counted from the focused row. A row that is focused stays in the document. */
function moveBy(rows: number): void {
  const all = [...document.querySelectorAll('main .body > .row:has(a)')];
  const current = all.findIndex((row) => row.contains(document.activeElement));
  focusOn(all[Math.max(0, current + rows)]?.querySelector('a'));
}
