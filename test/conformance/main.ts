import { CaseDirectoryError } from './read-directory.ts';
import { runDirectory } from './run-directory.ts';

/** `npm run conformance -- DIR`: runs the case files of a directory; exit code 1 unless all cases pass. */

const [directory, ...others] = process.argv.slice(2);

if (directory === undefined || others.length > 0) {
  process.stderr.write('Name one directory with case files: npm run conformance -- test/conformance/cases\n');
  process.exitCode = 1;
} else {
  try {
    const allPassed = await runDirectory(directory, {
      line: (text) => process.stdout.write(`${text}\n`),
      fault: (sentence) => process.stderr.write(`${sentence}\n`),
    });
    if (!allPassed) process.exitCode = 1;
  } catch (error) {
    if (!(error instanceof CaseDirectoryError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
