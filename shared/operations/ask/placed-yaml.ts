import {
  CORE_SCHEMA,
  constructFromEvents,
  EVENT_ID,
  type Event,
  getScalarValue,
  mergeTag,
  parseEvents,
} from 'js-yaml';

/** One document of a text. */
export interface PlacedDocument {
  readonly value: unknown;
  /** The line, from 1, on which what is at this path begins; of what stands elsewhere (an alias, a merge), the line that names it. */
  lineOf(path: readonly (string | number)[]): number;
}

/** Where a node begins in the text, and its parts, by key or index. */
interface Place {
  /** -1: nothing is written there. */
  readonly at: number;
  readonly parts: Map<string, Place>;
}

/** As kubectl reads it: with the merge keys of YAML 1.1. */
const SCHEMA = CORE_SCHEMA.withTags(mergeTag);

/** The documents of a YAML or JSON text, and where what stands in it. Throws `YAMLException`. */
export function readPlacedYaml(source: string): readonly PlacedDocument[] {
  const events = parseEvents(source, {});
  const values = constructFromEvents(events, { source, schema: SCHEMA });
  const places = placesOf(source, events);
  return values.map((value, index) => ({
    value,
    lineOf(path) {
      let place = places[index];
      let at = 0;
      for (const part of ['', ...path]) {
        if (part !== '') place = place?.parts.get(String(part));
        if (!place) break;
        at = Math.max(at, place.at);
      }
      return source.slice(0, at).split('\n').length;
    },
  }));
}

/** The place of each document's content. */
function placesOf(source: string, events: readonly Event[]): readonly Place[] {
  let next = 0;
  const readParts = (parts: Map<string, Place>, isMapping: boolean): void => {
    for (let index = 0; events[next]?.type !== EVENT_ID.POP; index++) {
      const key = events[next];
      if (isMapping) readNode();
      const text = isMapping && key?.type === EVENT_ID.SCALAR ? getScalarValue(source, key) : String(index);
      parts.set(text, readNode());
    }
    next += 1;
  };
  const readNode = (): Place => {
    const event = events[next];
    next += 1;
    const parts = new Map<string, Place>();
    switch (event?.type) {
      case EVENT_ID.MAPPING:
      case EVENT_ID.SEQUENCE:
        readParts(parts, event.type === EVENT_ID.MAPPING);
        return { at: event.start, parts };
      case EVENT_ID.SCALAR:
        return { at: event.valueStart, parts };
      case EVENT_ID.ALIAS:
        return { at: event.anchorStart, parts };
      default:
        throw new Error('a node begins here');
    }
  };
  const places: Place[] = [];
  while (events[next]) {
    next += 1;
    places.push(readNode());
    next += 1;
  }
  return places;
}
