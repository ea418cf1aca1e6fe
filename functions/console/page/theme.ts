import { effect, type Signal, signal } from '@preact/signals';
import { zone } from './moments.ts';

/** The system's color scheme, or the user's choice. */
export const theme = signal<'auto' | 'light' | 'dark'>('auto');
export const nextTheme = keepChoice('taintward.theme', theme, ['auto', 'light', 'dark']);
export const nextZone = keepChoice('taintward.zone', zone, ['UTC', 'local']);

effect(() => {
  document.documentElement.dataset['theme'] = theme.value;
});

/** Keeps the user's choice in the browser. Returns the function that makes the next one. */
function keepChoice<T extends string>(key: string, choice: Signal<T>, all: readonly T[]): () => void {
  const kept = localStorage.getItem(key);
  choice.value = all.find((each) => each === kept) ?? choice.value;
  effect(() => localStorage.setItem(key, choice.value));
  return () => {
    choice.value = all[(all.indexOf(choice.value) + 1) % all.length] ?? choice.value;
  };
}
