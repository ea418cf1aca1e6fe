/** Kubernetes' own limits, in bytes; a text that is not ASCII is refused for its characters anyway. */
const NAME_MAX_LENGTH = 63;
const VALUE_MAX_LENGTH = 63;
const PREFIX_MAX_LENGTH = 253;

const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

const NAME_RULE = "use letters, digits, '-', '_' and '.', with a letter or digit at both ends";
const DNS_RULE =
  "use lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part";

/**
 * What is wrong with a label key (an optional DNS subdomain and `/`, then a name), as ends of a sentence that
 * starts with the field's name. Empty when it is valid. Upstream: `content.IsLabelKey`.
 */
export function labelKeyFaults(key: string): readonly string[] {
  const parts = key.split('/');
  if (parts.length > 2)
    return ["must be a name with at most one prefix before a '/', for example example.com/gpu"];
  const name = parts.at(-1) ?? '';
  return [...(parts.length === 2 ? prefixFaults(parts[0] ?? '') : []), ...nameFaults(name)];
}

/** What is wrong with a label value, in the same form. Upstream: `content.IsLabelValue`. */
export function labelValueFaults(value: string): readonly string[] {
  const faults: string[] = [];
  if (value.length > VALUE_MAX_LENGTH)
    faults.push(`must have at most ${VALUE_MAX_LENGTH} characters: shorten it`);
  if (value !== '' && !NAME.test(value)) faults.push(`has a character that is not allowed: ${NAME_RULE}`);
  return faults;
}

function prefixFaults(prefix: string): readonly string[] {
  if (prefix === '') return ["has nothing before the '/': write a DNS subdomain there, or drop the '/'"];
  const faults: string[] = [];
  if (prefix.length > PREFIX_MAX_LENGTH) {
    faults.push(`must have at most ${PREFIX_MAX_LENGTH} characters before the '/': shorten the prefix`);
  }
  if (!DNS_SUBDOMAIN.test(prefix)) faults.push(`must have a DNS subdomain before the '/': ${DNS_RULE}`);
  return faults;
}

function nameFaults(name: string): readonly string[] {
  if (name === '') return ['must have a name: write one, for example maintenance'];
  const faults: string[] = [];
  if (name.length > NAME_MAX_LENGTH) {
    faults.push(`must have at most ${NAME_MAX_LENGTH} characters in its name: shorten it`);
  }
  if (!NAME.test(name)) faults.push(`has a character in its name that is not allowed: ${NAME_RULE}`);
  return faults;
}
