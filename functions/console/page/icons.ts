import { html } from 'htm/preact';
import type { VNode } from 'preact';

/** Icons in a square of 20 units, drawn only by strokes. */
const PATHS = {
  overview: 'M3 3h6v8H3zM11 3h6v4h-6zM11 9h6v8h-6zM3 13h6v4H3z',
  nodes: 'M3 3h14v6H3zM3 11h14v6H3zM6 6h.01M6 14h.01M10 6h4M10 14h4',
  pending: 'M10 5v6l3.5 2M17.5 11a7.5 7.5 0 1 1-15 0 7.5 7.5 0 0 1 15 0M7.5 1.5h5',
  history: 'M3 4v4h4M3.5 7.5a7.5 7.5 0 1 1-.9 4M10 6v4.5l3 2',
  'what-if': 'M10 18V10M10 10 4 4M10 10l6-6M4 8V4h4M12 4h4v4',
  rules: 'M10 2l7 2.5v5c0 4-3 7-7 8.5-4-1.5-7-4.5-7-8.500v-5zM7 10l2.2 2.200L13.5 8',
  stop: 'M6.5 2h7L18 6.500v7L13.5 18h-7L2 13.500v-7zM7 10h6',
  resume: 'M6 3.500v13l10.5-6.500z',
  light:
    'M10 13.500a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7M10 1.500v2M10 16.500v2M1.5 10h2M16.5 10h2M4 4l1.4 1.400M14.6 14.6 16 16M4 16l1.4-1.400M14.6 5.4 16 4',
  dark: 'M17 11.500A7.5 7.5 0 1 1 8.5 3a6 6 0 0 0 8.5 8.5',
  auto: 'M10 2.500a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15M10 2.500v15M12 6h4M12 10h5M12 14h4',
  hold: 'M6.5 3.500v13M13.5 3.500v13',
} as const;

export type IconName = keyof typeof PATHS;

/** An icon that repeats the adjacent text. */
export const Icon = ({ name }: { readonly name: IconName }): VNode => html`
  <svg viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"
    stroke-linejoin="round" aria-hidden="true">
    <path d=${PATHS[name]} />
  </svg>
`;

/** The logo: a node with a taint, pods that stay, and a pod that is evicted. */
export const Mark = (): VNode => html`
  <svg viewBox="0 0 24 24" fill="none" aria-hidden="true">
    <rect x="1.5" y="1.5" width="21" height="21" rx="6" stroke="var(--link)" stroke-width="2" />
    <path d="M7 12h10" stroke="var(--link)" stroke-width="2" stroke-linecap="round" />
    <circle cx="8" cy="7.5" r="1.5" fill="var(--link)" />
    <circle cx="13" cy="7.5" r="1.5" fill="var(--link)" />
    <path d="M12 15v4m-2-1.8 2 1.8 2-1.8" stroke="var(--goes-fill)" stroke-width="1.8" stroke-linecap="round"
      stroke-linejoin="round" />
  </svg>
`;
