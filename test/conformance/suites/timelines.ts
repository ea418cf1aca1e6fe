import { readCases, type Suite } from '../suite.ts';
import { timelineCase } from '../timeline.ts';
import { compareTimeline } from '../timeline-comparison.ts';
import { playTimeline } from '../timeline-world.ts';

export const timelinesSuite: Suite = {
  schema: 'timelines/1',
  cases: (file) =>
    readCases('cases', file.cases, timelineCase, async (given) =>
      compareTimeline(given, await playTimeline(given)),
    ),
};
