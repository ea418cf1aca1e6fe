// Must run before the modules that read it.
import './environment.ts';
import { html, render } from 'htm/preact';
import { App } from './app.ts';
import { listenToKeys } from './keys.ts';
import { listen } from './live.ts';

const root = document.getElementById('app');
if (root) render(html`<${App} />`, root);
listen();
listenToKeys();
