import { html } from 'htm/preact';
import type { ComponentType, VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { durationText } from '#shared/time/duration.ts';
import { ActButton, resumeEvictions, stopEvictions } from './act-button.ts';
import { Confirmation, shownMessage } from './acts.ts';
import { Icon, type IconName, Mark } from './icons.ts';
import { clock, connection, now, pendingTotal, staleSince, status, trouble } from './live.ts';
import { momentText, zone } from './moments.ts';
import { Empty, Title } from './parts.ts';
import { href, route } from './route.ts';
import { nextTheme, type Theme, theme } from './theme.ts';
import { History } from './views/history.ts';
import { NodeStory } from './views/node-story.ts';
import { Nodes } from './views/nodes.ts';
import { Overview } from './views/overview.ts';
import { Pending } from './views/pending.ts';
import { PodStory } from './views/pod-story.ts';
import { RulesView } from './views/rules.ts';
import { localText } from './views/story.ts';
import { Tolerations } from './views/tolerations.ts';
import { WhatIf } from './views/what-if.ts';

/** Views in the navigation, by the first word of their address. */
const VIEWS: readonly (readonly [path: string, title: string, icon: IconName, view: ComponentType])[] = [
  ['', 'Overview', 'overview', Overview],
  ['nodes', 'Nodes', 'nodes', Nodes],
  ['pending', 'Pending', 'pending', Pending],
  ['history', 'History', 'history', History],
  ['what-if', 'What if', 'what-if', WhatIf],
  ['rules', 'Rules', 'rules', RulesView],
];
/** Views that links to a pod, node, or workload open. */
const STORIES: Readonly<Record<string, ComponentType>> = {
  pod: PodStory,
  node: NodeStory,
  tolerations: Tolerations,
};

/** The whole page. */
export function App(): VNode {
  const { path } = route.value;
  const [first = ''] = path;
  const View = STORIES[first] ?? VIEWS.find(([name]) => name === first)?.[3] ?? Nowhere;
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Side} />
    <main id="main" tabindex="-1" class=${staleSince.value === undefined ? '' : 'stale'}>
      <${Banners} />
      <div class="page" key=${path.join('/')}><${View} /></div>
      <${Arrival} />
    </main>
    <${Confirmation} />
    <div class="toast" role="status">${shownMessage.value}</div>
  `;
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

/** Moves the focus, so that screen readers announce a new view, as they do after a page load. */
function Arrival(): undefined {
  const path = route.value.path.join('/');
  const from = useRef(path);
  useEffect(() => {
    const heading = document.querySelector('h1');
    document.title = `${heading?.textContent ?? 'Console'} · Taintward`;
    if (from.current === path) return;
    from.current = path;
    window.scrollTo(0, 0);
    if (heading instanceof HTMLElement) heading.focus({ preventScroll: true });
  }, [path]);
}

const Nowhere = (): VNode => html`
  <${Title} title="Page not found" />
  <${Empty} title="Unknown address"><a href="#/">Go to the overview</a>.</${Empty}>
`;

function Side(): VNode {
  const [first = ''] = route.value.path;
  const count = pendingTotal.value;
  return html`
    <header class="side">
      <a class="brand" href="#/"><${Mark} />Taintward</a>
      <nav class="views" aria-label="Views">
        ${VIEWS.map(
          ([path, title, icon]) => html`
            <a key=${path} href=${href([path].filter(Boolean))} aria-current=${path === first ? 'page' : undefined}>
              <${Icon} name=${icon} />${title}
              ${
                path === 'pending' &&
                count > 0 &&
                html`<span class="count">${count.toLocaleString('en')}<span class="unseen"> pods</span></span>`
              }
            </a>
          `,
        )}
      </nav>
      <div class="foot">
        ${status.value?.stop && html`<${ActButton} intent=${resumeEvictions()} text="Resume all" icon="resume" />`}
        <${ActButton} intent=${stopEvictions()} icon="stop" kind="edged" />
        <${ThemeSwitch} />
        <${ZoneSwitch} />
        <${Lamp} />
      </div>
    </header>
  `;
}

const THEME_TEXT: Readonly<Record<Theme, string>> = { auto: 'System', light: 'Light', dark: 'Dark' };

const ThemeSwitch = (): VNode => html`
  <button
    type="button"
    class="button plain"
    onClick=${() => {
      theme.value = nextTheme(theme.value);
    }}
  >
    <${Icon} name=${theme.value} /><span class="word"><span class="unseen">Theme: </span>${THEME_TEXT[theme.value]}</span>
  </button>
`;

const ZoneSwitch = (): VNode => html`
  <button
    type="button"
    class="button plain"
    onClick=${() => {
      zone.value = zone.value === 'UTC' ? 'local' : 'UTC';
    }}
  >
    <${Icon} name="history" /><span class="word"><span class="unseen">Times: </span>${zone.value === 'UTC' ? 'UTC' : 'Local time'}</span>
  </button>
`;

function Lamp(): VNode {
  const { state } = connection.value;
  const isStale = state === 'live' && staleSince.value !== undefined;
  const tone = isStale || state === 'connecting' ? 'held' : state === 'live' ? 'well' : 'goes';
  const text = isStale
    ? 'outdated'
    : { live: 'live', connecting: 'connecting', lost: 'not connected', over: 'session ended' }[state];
  return html`<div class="connection"><span class="lamp" data-tone=${tone}></span><span class="word">${text}</span></div>`;
}

/** Screen readers would announce an age again with each second. */
const StateOf = ({ at }: { readonly at: number }): VNode => html`
  This page shows the state of
  ${' '}${momentText(at, clock.value)}<span aria-hidden="true">, ${durationText(clock.value - at)} ago</span>.
`;

function Banners(): VNode {
  const held = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    // Table heads stick below the banners.
    const height = held.current?.offsetHeight ?? 0;
    document.documentElement.style.setProperty('--banners', `${height}px`);
  });
  const connected = connection.value;
  const stop = status.value?.issues.find(({ type, cluster }) => type === 'stopped' && !cluster);
  const since = staleSince.value ?? now.value;
  return html`
    <div class="banners" ref=${held} role="status">
      ${
        connected.state === 'lost' &&
        html`<div class="banner" data-tone="goes">
          <p>
            <strong>Connection lost.</strong> <${StateOf} at=${since} /> It reconnects automatically if the same service
            responds again. After a restart of the service, run taintward console, or type console at npm start.
          </p>
        </div>`
      }
      ${
        connected.state === 'over' &&
        html`<div class="banner" data-tone="goes">
          <p><strong>Session ended.</strong> ${connected.why} <${StateOf} at=${since} /></p>
        </div>`
      }
      ${
        trouble.value !== '' &&
        html`<div class="banner" data-tone="goes">
          <p><strong>The server cannot read its clusters.</strong> ${trouble.value} <${StateOf} at=${since} /></p>
        </div>`
      }
      ${
        stop &&
        html`<div class="banner">
          <p><strong>${localText(stop.message, now.value)}</strong></p>
          <${ActButton} intent=${resumeEvictions()} />
        </div>`
      }
    </div>
  `;
}
