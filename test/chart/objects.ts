import { loadAll } from 'js-yaml';
import { fieldsOf, textOf } from '#shared/kubernetes/http/api-json.ts';

type KubernetesObject = Readonly<Record<string, unknown>>;

/** Returns the objects of a YAML stream, by kind and name. */
export function objectsOf(yaml: string): ReadonlyMap<string, KubernetesObject> {
  const all = loadAll(yaml).map(fieldsOf);
  return new Map(
    all.map((each) => [`${textOf(each['kind'])}/${textOf(fieldsOf(each['metadata'])['name'])}`, each]),
  );
}
