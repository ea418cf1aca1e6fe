import { effect, signal } from '@preact/signals';
import { zone } from './moments.ts';

/** The system's color scheme, or the user's choice. */
type Theme = 'auto' | 'light' | 'dark';

const KEY = 'taintward.theme';
const THEMES: readonly Theme[] = ['auto', 'light', 'dark'];

const isTheme = (value: unknown): value is Theme => THEMES.some((theme) => theme === value);

const stored = localStorage.getItem(KEY);

export const theme = signal<Theme>(isTheme(stored) ? stored : 'auto');

effect(() => {
  document.documentElement.dataset['theme'] = theme.value;
  localStorage.setItem(KEY, theme.value);
});

const ZONE_KEY = 'taintward.zone';
if (localStorage.getItem(ZONE_KEY) === 'local') zone.value = 'local';

effect(() => localStorage.setItem(ZONE_KEY, zone.value));

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'auto';
}

export function nextZone(): void {
  zone.value = zone.value === 'UTC' ? 'local' : 'UTC';
}
