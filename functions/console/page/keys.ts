import { showMessage } from './acts.ts';

const KEYS: Readonly<Record<string, () => void>> = {
  '/': () => focusOn(document.querySelector('main input')),
  j: () => moveBy(1),
  k: () => moveBy(-1),
  '?': () =>
    showMessage('Keys: / enters the search, Escape leaves it, j and k go to the next and previous row.'),
};

/** Listens to the keys of the page. Fields and dialogs keep theirs. */
export function listenToKeys(): void {
  document.addEventListener('keydown', (event) => {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    const field = target instanceof HTMLElement ? target.closest('input, select, textarea, dialog') : null;
    if (field instanceof HTMLInputElement && key === 'Escape') field.blur();
    if (field || ctrlKey || metaKey || altKey || !Object.hasOwn(KEYS, key)) return;
    event.preventDefault();
    KEYS[key]?.();
  });
}

const focusOn = (element: Element | null | undefined): void => {
  if (element instanceof HTMLElement) element.focus();
};

/** Focuses the first link of another row, counted from the focused row. A row that is focused stays in the document. */
function moveBy(rows: number): void {
  const all = [...document.querySelectorAll('main .body > .row:has(a)')];
  const current = all.findIndex((row) => row.contains(document.activeElement));
  focusOn(all[Math.max(0, current + rows)]?.querySelector('a'));
}
