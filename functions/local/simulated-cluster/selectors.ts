import { fieldsOf, textOf } from './objects/json.ts';
import type { ApiObject, ResourceName } from './objects/kinds.ts';
import { badRequest } from './objects/status.ts';

/** Whether an object is one of those asked for. */
export type Selector = (object: ApiObject) => boolean;

export const everything: Selector = () => true;

/** The fields that the real server lets one select by, apart from name and namespace. */
const SELECTABLE_FIELDS: { readonly [R in ResourceName]: readonly string[] } = {
  nodes: ['spec.unschedulable'],
  pods: ['spec.nodeName', 'spec.restartPolicy', 'spec.schedulerName', 'status.phase', 'status.podIP'],
  events: [
    'involvedObject.kind',
    'involvedObject.namespace',
    'involvedObject.name',
    'involvedObject.uid',
    'involvedObject.apiVersion',
    'involvedObject.resourceVersion',
    'involvedObject.fieldPath',
    'reason',
    'reportingComponent',
    'source',
    'type',
  ],
  namespaces: ['status.phase'],
};

const OPERATION = /^(?<path>[^=!]+?)\s*(?<operator>==?|!=)\s*(?<value>.*)$/;

/** `path=value`, `path==value` and `path!=value`, all of them, separated by commas. Throws 400. */
export function fieldSelector(resource: ResourceName, text: string): Selector {
  return all(text, (term) => {
    const { path = '', operator, value = '' } = OPERATION.exec(term)?.groups ?? {};
    if (!operator) throw badRequest(`invalid field selector "${term}": write field=value or field!=value`);
    if (!['metadata.name', 'metadata.namespace', ...SELECTABLE_FIELDS[resource]].includes(path)) {
      throw badRequest(`field label not supported: ${path}`);
    }
    return (object) => (fieldText(object, path) === value) === (operator !== '!=');
  });
}

/** `label=value`, `label==value`, `label!=value`, `label` and `!label`, all of them. Throws 400 for anything else. */
export function labelSelector(text: string): Selector {
  return all(text, (term) => {
    if (/[\s()]/.test(term)) {
      throw badRequest(
        `unsupported label selector "${term}": write label=value, label!=value, label or !label`,
      );
    }
    const { path, operator, value } = OPERATION.exec(term)?.groups ?? {};
    if (path !== undefined && value !== undefined) {
      return ({ metadata }) => (metadata.labels?.[path] === value) === (operator !== '!=');
    }
    const label = term.replace(/^!/, '');
    if (label === '' || label.includes('=')) {
      throw badRequest(
        `unable to parse label selector "${term}": write label=value, label!=value, label or !label`,
      );
    }
    return ({ metadata }) => (metadata.labels?.[label] !== undefined) === (label === term);
  });
}

function all(text: string, parse: (term: string) => Selector): Selector {
  const selectors = text
    .split(',')
    .map((term) => term.trim())
    .filter((term) => term !== '')
    .map(parse);
  return (object) => selectors.every((selects) => selects(object));
}

function fieldText(object: ApiObject, path: string): string {
  let value: unknown = object;
  for (const field of path.split('.')) value = fieldsOf(value)[field];
  // An Event's source is selected by its component; an absent flag counts as false.
  if (path === 'source') return textOf(fieldsOf(value)['component']);
  if (path === 'spec.unschedulable') return String(value === true);
  return textOf(value);
}
