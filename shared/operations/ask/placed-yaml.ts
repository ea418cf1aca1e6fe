import {
  CORE_SCHEMA,
  constructFromEvents,
  EVENT_ID,
  type Event,
  getScalarValue,
  mergeTag,
  parseEvents,
} from 'js-yaml';

/** A document of a text. */
export interface PlacedDocument {
  readonly value: unknown;
  /**
   * Returns the line, from 1, on which the value at this path starts. For a value defined elsewhere (an alias
   * or a merge), returns the line that refers to it.
   */
  lineOf(path: readonly (string | number)[]): number;
}

/** Position of a node in the text, and its parts by key or index. */
interface Place {
  /** -1: nothing is written there. */
  readonly at: number;
  readonly parts: Map<string, Place>;
}

/** The schema that kubectl uses, with the merge keys of YAML 1.1. */
const SCHEMA = CORE_SCHEMA.withTags(mergeTag);

/** Reads the documents of a YAML or JSON text, with the positions of their values. Throws `YAMLException`. */
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

/** Returns the position of each document's content. */
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
