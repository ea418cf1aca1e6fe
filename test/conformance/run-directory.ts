import { stringifyInt64Json } from '#shared/kubernetes/http/api-json.ts';
import { readDirectory } from './read-directory.ts';
import type { Mismatch } from './suite.ts';

/** The receiver of the report, a line at a time. */
export interface Output {
  line(text: string): void;
  /** A fault of the input, not of the code. */
  fault(sentence: string): void;
}

/**
 * Runs every case of every file in a directory, one after the other, and reports each failure, then the line `N passed,
 * N failed`. A file without runnable cases counts as one failure. Returns true without failures; rejects with
 * `CaseDirectoryError` when there is nothing to run.
 */
export async function runDirectory(directory: string, output: Output): Promise<boolean> {
  let passed = 0;
  let failed = 0;
  for (const file of await readDirectory(directory)) {
    if ('fault' in file) {
      output.fault(file.fault);
      failed += 1;
      continue;
    }
    for (const oneCase of file.cases) {
      const mismatch = await oneCase.run();
      if (mismatch) {
        report(output, `${file.name} ${oneCase.id}`, mismatch);
        failed += 1;
      } else {
        passed += 1;
      }
    }
  }
  output.line(`${passed} passed, ${failed} failed`);
  return failed === 0;
}

function report(output: Output, title: string, { expected, got }: Mismatch): void {
  output.line(`FAILED ${title}`);
  output.line(`  expected ${stringifyInt64Json(expected)}`);
  output.line(`  got      ${stringifyInt64Json(got)}`);
}
