import { type Room, SIMULATOR, SIMULATOR_HOST, STOREYS, type Storey } from './house.ts';

/*
 * Draws docs/images/house.svg from `house.ts`: a column of storeys, each with its rooms side by side. All sizes are in pixels. Fonts of
 * the viewer's system differ, so widths of texts are estimates that are rather too large.
 */

const WIDTH = 1024;
const MARGIN = 16;
const HOUSE_WIDTH = 836;
const LABEL_WIDTH = 132;
const ROOF_HEIGHT = 56;
const GAP = 8;
const PADDING = 10;
const ROOM_HEIGHT = 46;
const PART_HEIGHT = 18;
const PART_GAP = 5;

/** Characters per line below the name of a storey. */
const NOTE_CHARACTERS = 20;

/** A kind of text: its CSS class, and the estimated width of a character. */
const FONTS = { name: 7.3, purpose: 6, part: 6.7, storey: 7.6, note: 5.7 } as const;
type Font = keyof typeof FONTS;

/** The picture has its own background, so it is readable on light and on dark pages. */
const STYLE = `
    text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; fill: #1f2328; }
    .name, .part { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
    .name { font-size: 12px; font-weight: 600; }
    .purpose { font-size: 11.5px; fill: #57606a; }
    .part { font-size: 10.5px; }
    .storey { font-size: 13.5px; font-weight: 700; }
    .note { font-size: 11px; fill: #57606a; }
    .page { fill: #f6f8fa; stroke: #d0d7de; }
    .roof { fill: #cf222e; fill-opacity: .12; stroke: #cf222e; }
    .floor { fill: #ffffff; stroke: #8c959f; }
    .room { fill: #ddf4ff; stroke: #54aeff; }
    .pure { fill: #dafbe1; stroke: #4ac26b; }
    .beside { fill: #fff8c5; stroke: #d4a72c; }
    .chip { fill: #ffffff; stroke: #8c959f; stroke-opacity: .6; }
    .arrow { fill: none; stroke: #57606a; stroke-width: 1.5; }`;

/** Returns the picture, as SVG. */
export function housePicture(): string {
  const lines: string[] = [];
  let y = MARGIN + ROOF_HEIGHT;
  for (const storey of STOREYS) {
    lines.push(...storeyLines(storey, y));
    y += heightOf(storey);
  }
  const height = y + MARGIN;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title text">
  <title id="title">The rooms of Taintward</title>
  <desc id="text">${escaped(description())}</desc>
  <!-- Made from docs/generator/house.ts by npm run docs. -->
  <style>${STYLE}
  </style>
  <rect class="page" x=".5" y=".5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
${[...roofLines(), ...lines, ...besideLines(y)].map((line) => `  ${line}`).join('\n')}
</svg>
`;
}

function description(): string {
  const storeys = STOREYS.map(({ name, rooms }) => `${name}: ${rooms.map(({ path }) => path).join(', ')}`);
  return `A file imports from its own room and from rooms below and to the right. ${storeys.join('. ')}. Beside the house: ${SIMULATOR.path}.`;
}

const hasParts = ({ rooms }: Storey): boolean => rooms.some(({ parts = [] }) => parts.length > 0);

const roomHeightOf = (storey: Storey): number =>
  ROOM_HEIGHT + (hasParts(storey) ? PART_HEIGHT + PART_GAP : 0);

const heightOf = (storey: Storey): number => roomHeightOf(storey) + 2 * GAP;

function roofLines(): readonly string[] {
  const [left, top, right] = [MARGIN, MARGIN, MARGIN + HOUSE_WIDTH];
  const bottom = top + ROOF_HEIGHT;
  const middle = (left + right) / 2;
  return [
    `<path class="roof" d="M${left} ${bottom} L${middle} ${top} L${right} ${bottom} Z"/>`,
    text('note', middle, bottom - 12, 'imports run down, and to the right', 'middle'),
  ];
}

function storeyLines(storey: Storey, y: number): readonly string[] {
  const x = MARGIN + LABEL_WIDTH;
  const rooms = storey.rooms.map((room) => ({ room, width: widthOf(room) }));
  const gaps = GAP * (rooms.length + 1);
  const spare =
    (HOUSE_WIDTH - LABEL_WIDTH - gaps - rooms.reduce((sum, { width }) => sum + width, 0)) / rooms.length;
  if (spare < 0) throw new Error(`the rooms of ${storey.name} are too wide by ${-spare * rooms.length} px`);
  let left = x + GAP;
  const drawn = rooms.flatMap(({ room, width }) => {
    const at = left;
    left += width + spare + GAP;
    const look = storey.name === 'Pure' ? 'pure' : 'room';
    return roomLines(room, look, { x: at, y: y + GAP, width: width + spare, height: roomHeightOf(storey) });
  });
  return [
    rect('floor', { x: MARGIN, y, width: HOUSE_WIDTH, height: heightOf(storey) }, 0),
    text('storey', MARGIN + PADDING, y + 24, storey.name),
    ...wrapped(storey.note, NOTE_CHARACTERS).map((line, index) =>
      text('note', MARGIN + PADDING, y + 40 + 14 * index, line),
    ),
    ...drawn,
  ];
}

/** The simulated cluster on the ground beside the house, and an arrow from the storey of its only user. */
function besideLines(ground: number): readonly string[] {
  const x = MARGIN + HOUSE_WIDTH + 28;
  const width = WIDTH - MARGIN - x;
  const parts = SIMULATOR.parts ?? [];
  const height = ROOM_HEIGHT + parts.length * (PART_HEIGHT + PART_GAP);
  const y = ground - height;
  const index = STOREYS.findIndex(({ rooms }) =>
    rooms.some(({ path }) => SIMULATOR_HOST.startsWith(`${path}/`)),
  );
  const above = STOREYS.slice(0, index).reduce((sum, storey) => sum + heightOf(storey), MARGIN + ROOF_HEIGHT);
  const from = above + GAP + ROOM_HEIGHT / 2;
  const middle = x + width / 2;
  return [
    rect('beside', { x, y, width, height }),
    text('name', x + PADDING, y + 18, SIMULATOR.path),
    text('purpose', x + PADDING, y + 34, SIMULATOR.purpose),
    ...parts.flatMap((part, row) =>
      chip(part, x + PADDING, y + ROOM_HEIGHT - 4 + row * (PART_HEIGHT + PART_GAP)),
    ),
    `<path class="arrow" d="M${MARGIN + HOUSE_WIDTH} ${from} H${middle} V${y - 2} m-4 -7 l4 7 l4 -7"/>`,
    text('note', middle, from - 8, `only ${SIMULATOR_HOST.split('/').at(-1)}`, 'middle'),
  ];
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

function roomLines({ path, purpose, parts = [] }: Room, look: string, box: Box): readonly string[] {
  const x = box.x + PADDING;
  let left = x;
  const chips = parts.flatMap((part) => {
    const at = left;
    left += chipWidth(part) + PART_GAP;
    return chip(part, at, box.y + ROOM_HEIGHT - 4);
  });
  return [
    rect(look, box),
    text('name', x, box.y + 18, path),
    text('purpose', x, box.y + 34, purpose),
    ...chips,
  ];
}

function widthOf({ path, purpose, parts = [] }: Room): number {
  const chips = parts.reduce((sum, part) => sum + chipWidth(part) + PART_GAP, -PART_GAP);
  return Math.ceil(Math.max(textWidth('name', path), textWidth('purpose', purpose), chips)) + 2 * PADDING;
}

const chipWidth = (part: string): number => Math.ceil(textWidth('part', part)) + 12;

const chip = (part: string, x: number, y: number): readonly string[] => [
  rect('chip', { x, y, width: chipWidth(part), height: PART_HEIGHT }, 3),
  text('part', x + 6, y + 13, part),
];

const textWidth = (font: Font, of: string): number => of.length * FONTS[font];

const rect = (look: string, { x, y, width, height }: Box, radius = 4): string =>
  `<rect class="${look}" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="${radius}"/>`;

const text = (font: Font, x: number, y: number, of: string, anchor?: 'middle'): string =>
  `<text class="${font}" x="${round(x)}" y="${round(y)}"${anchor ? ` text-anchor="${anchor}"` : ''}>${escaped(of)}</text>`;

const round = (value: number): number => Math.round(value * 10) / 10;

const escaped = (of: string): string =>
  of.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Breaks a text into lines of at most that many characters. */
function wrapped(of: string, characters: number): readonly string[] {
  const lines: string[] = [];
  for (const word of of.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && `${last} ${word}`.length <= characters)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
