import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ApiObject } from '#functions/local/simulated-cluster/objects/kinds.ts';
import { StatusError } from '#functions/local/simulated-cluster/objects/status.ts';
import { aStore, inDefault, podsOf, settableClock } from '../builders.ts';

function setup() {
  const clock = settableClock();
  const store = aStore({ clock });
  const web = inDefault('web');
  const apply = (manager: string, spec: object, force = false) => {
    clock.at += 1000;
    const wanted = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec };
    return store.apply('deployments', web, 'main', wanted as unknown as ApiObject, { manager, force });
  };
  const update = (manager: string, spec: object) => {
    clock.at += 1000;
    const change = (current: ApiObject) => ({ ...current, spec: { ...Object(current['spec']), ...spec } });
    return store.update('deployments', web, 'main', change, { manager });
  };
  const owners = () =>
    (store.get('deployments', web).metadata.managedFields ?? []).map(
      ({ manager, operation }) => `${manager} ${operation}`,
    );
  return { store, web, apply, update, owners, spec: () => store.get('deployments', web).spec };
}

const WEB = { replicas: 3, ...podsOf('web') };

const conflict = (message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof StatusError, String(error));
  assert.equal(error.code, 409);
  assert.match(error.message, message);
  return true;
};

describe('applying', () => {
  test('makes what is not there, owned as far as it was said', () => {
    const { apply, store, web } = setup();
    assert.equal(apply('me', WEB).isNew, true);
    const { managedFields } = store.get('deployments', web).metadata;
    assert.equal(managedFields?.length, 1);
    assert.deepEqual(managedFields?.[0]?.fieldsV1, {
      'f:spec': {
        'f:replicas': {},
        'f:selector': {},
        'f:template': {
          'f:metadata': { 'f:labels': { 'f:app': {} } },
          'f:spec': {
            'f:containers': { 'k:{"name":"main"}': { '.': {}, 'f:image': {}, 'f:name': {} } },
          },
        },
      },
    });
  });

  test('the same again changes nothing', () => {
    const { apply, store } = setup();
    apply('me', WEB);
    const { version } = store;
    assert.equal(apply('me', WEB).isNew, false);
    assert.equal(store.version, version);
  });

  test('takes back what one no longer wants, and leaves what others own', () => {
    const { apply, spec } = setup();
    const [container] = WEB.template.spec.containers;
    const inTemplate = (...containers: readonly object[]) => ({
      ...WEB,
      template: { ...WEB.template, spec: { containers } },
    });
    apply('me', {
      ...inTemplate({ ...container, env: [{ name: 'A', value: '1' }] }, { name: 'side', image: 's' }),
      minReadySeconds: 5,
    });
    apply('other', inTemplate({ name: 'main', env: [{ name: 'B', value: '2' }] }), true);
    apply('me', inTemplate(container ?? {}), true);
    assert.equal(spec().minReadySeconds, undefined);
    assert.deepEqual(
      spec().template.spec.containers.map(({ name, env }) => [name, env]),
      [['main', [{ name: 'B', value: '2' }]]],
    );
  });

  test("another's field to another value is a conflict that names it", () => {
    const { apply, update, spec } = setup();
    apply('me', WEB);
    update('scaler', { replicas: 5 });
    assert.throws(
      () => apply('me', WEB),
      conflict(
        /^Apply failed with 1 conflict: conflict with "scaler" using apps\/v1 at 2026-11-21T12:00:02Z: \.spec\.replicas$/,
      ),
    );
    assert.equal(spec().replicas, 5);
  });

  test('several conflicts are told by owner', () => {
    const { apply } = setup();
    apply('me', { ...WEB, minReadySeconds: 1 });
    const [container] = WEB.template.spec.containers;
    const template = { ...WEB.template, spec: { containers: [{ ...container, image: 'x:2' }] } };
    assert.throws(
      () => apply('you', { replicas: 4, template }),
      conflict(
        /^Apply failed with 2 conflicts: conflicts with "me":\n- \.spec\.replicas\n- \.spec\.template\.spec\.containers\[name="main"\]\.image$/,
      ),
    );
  });

  test('by force takes a field over', () => {
    const { apply, update, spec, owners } = setup();
    apply('me', WEB);
    update('scaler', { replicas: 5 });
    apply('me', WEB, true);
    assert.equal(spec().replicas, 3);
    assert.deepEqual(owners(), ['me Apply']);
  });

  test('the value that is there already shares the field', () => {
    const { apply, owners, spec } = setup();
    apply('me', WEB);
    apply('you', { replicas: 3 });
    assert.deepEqual(owners(), ['me Apply', 'you Apply']);
    apply('me', { ...podsOf('web') });
    assert.equal(spec().replicas, 3);
    apply('you', {}, true);
    assert.equal(spec().replicas, 1);
  });
});
