import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';

/** A command, and a button that copies it. */
export function Command({ text }: { readonly text: string }): VNode {
  const [copied, setCopied] = useState('');
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setCopied(text),
      () => setCopied(''),
    );
  return html`<span class="command">
    <code>${text}</code>
    <button type="button" class="button plain" onClick=${copy}>
      ${copied === text ? 'Copied' : 'Copy'}<span class="unseen"> command</span>
    </button>
  </span>`;
}
