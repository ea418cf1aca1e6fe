/** The lines of a text that comes in pieces, each as soon as it is whole; reads on only as lines are taken. */
export async function* splitLines(pieces: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  let begun = '';
  for await (const piece of pieces) {
    const lines = piece.split('\n');
    lines[0] = begun + (lines[0] ?? '');
    begun = lines.pop() ?? '';
    yield* lines;
  }
  if (begun !== '') yield begun;
}
