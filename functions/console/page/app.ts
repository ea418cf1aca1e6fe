import { html } from 'htm/preact';
import type { ComponentType, VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { durationText } from '#shared/time/duration.ts';
import { ActButton, resumeEvictions, stopEvictions } from './act-button.ts';
import { Confirmation, shownMessage } from './acts.ts';
import { Icon, type IconName, Mark } from './icons.ts';
import { clock, connection, now, pendingTotal, staleSince, status, trouble } from './live.ts';
import { momentText, zone } from './moments.ts';
import { Empty, Title, type Titled } from './parts.ts';
import { href, route } from './route.ts';
import { nextTheme, nextZone, theme } from './theme.ts';
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
        <${Switch} icon=${theme.value} label="Theme" text=${THEME_TEXT[theme.value]} onClick=${nextTheme} />
        <${Switch} icon="history" label="Times" text=${ZONE_TEXT[zone.value]} onClick=${nextZone} />
        <${Lamp} />
      </div>
    </header>
  `;
}

const THEME_TEXT = { auto: 'System', light: 'Light', dark: 'Dark' };
const ZONE_TEXT = { UTC: 'UTC', local: 'Local time' };

interface SwitchProps {
  readonly icon: IconName;
  readonly label: string;
  readonly text: string;
  readonly onClick: () => void;
}

/** A button that shows a setting of the page, and changes it. */
const Switch = ({ icon, label, text, onClick }: SwitchProps): VNode => html`
  <button type="button" class="button plain" onClick=${onClick}>
    <${Icon} name=${icon} /><span class="word"><span class="unseen">${label}: </span>${text}</span>
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

/** Why the page shows a past state, and which. Screen readers would announce its age again with each second. */
function Outdated({ title, children }: Titled): VNode {
  const at = now.value;
  return html`<div class="banner" data-tone="goes">
    <p>
      <strong>${title}</strong> ${children} This page shows the state of
      ${' '}${momentText(at, clock.value)}<span aria-hidden="true">, ${durationText(clock.value - at)} ago</span>.
    </p>
  </div>`;
}

function Banners(): VNode {
  const held = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    // Table heads stick below the banners.
    const height = held.current?.offsetHeight ?? 0;
    document.documentElement.style.setProperty('--banners', `${height}px`);
  });
  const connected = connection.value;
  const stop = status.value?.issues.find(({ type, cluster }) => type === 'stopped' && !cluster);
  return html`
    <div class="banners" ref=${held} role="status">
      ${
        connected.state === 'lost' &&
        html`<${Outdated} title="Connection lost.">
          The page reconnects automatically if the same service responds again. After a restart of the service,
          run taintward console, or type console at npm start.
        </${Outdated}>`
      }
      ${connected.state === 'over' && html`<${Outdated} title="Session ended.">${connected.why}</${Outdated}>`}
      ${trouble.value !== '' && html`<${Outdated} title="The server cannot read its clusters.">${trouble.value}</${Outdated}>`}
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
