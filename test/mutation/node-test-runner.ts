import { glob } from 'node:fs/promises';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { INSTRUMENTER_CONSTANTS, type InstrumenterContext } from '@stryker-mutator/api/core';
import { commonTokens, declareClassPlugin, PluginKind, tokens } from '@stryker-mutator/api/plugin';
import {
  type DryRunOptions,
  type DryRunResult,
  DryRunStatus,
  determineHitLimitReached,
  type MutantRunOptions,
  type MutantRunResult,
  MutantRunStatus,
  type TestResult,
  type TestRunner,
  type TestRunnerCapabilities,
  TestStatus,
  toMutantRunResult,
} from '@stryker-mutator/api/test-runner';
import fc from 'fast-check';
import { type CollectedTest, collectTests, runTest } from './collected-tests.ts';

/** The runner's own options within Stryker's. */
export interface NodeTestRunnerOptions {
  /** Globs of test files. */
  readonly testFiles: readonly string[];
}

/** A test that runs longer than this, in milliseconds, waits for something that its mutant never does. */
const ENDLESS_MS = 10_000;
/** The original timers, before a test replaces them by a clock of its own. */
const { setTimeout, clearTimeout } = globalThis;

const COLLECTOR = new URL('./collected-tests.ts', import.meta.url).href;

/** The global object from which instrumented code reads the active mutant, and in which it records coverage. */
const stryker: { -readonly [Key in keyof InstrumenterContext]: InstrumenterContext[Key] | undefined } = {};
Object.assign(globalThis, { [INSTRUMENTER_CONSTANTS.NAMESPACE]: stryker });

/**
 * Runs tests of `node:test` for Stryker in one process, test by test. Each mutant is run with the tests that reach it,
 * within milliseconds. For a mutant of code that runs while modules load, the modules are reloaded. Property tests have
 * a fixed seed, so that a killed mutant is killed again.
 */
export class NodeTestRunner implements TestRunner {
  static readonly inject = tokens(commonTokens.options);
  readonly #files: readonly string[];
  #tests: readonly CollectedTest[] | undefined;
  /** The test that killed the last mutant runs first: mutants of one place come one after another. */
  readonly #killers = new Map<string, number>();
  /** The number of loads so far. */
  #loads = 0;
  /** The failure outside of a test's promise. */
  #stray: unknown;
  /** A test that never ends goes on in this process. */
  #isEndless = false;

  constructor(options: object) {
    this.#files = (options as { readonly nodeTest: NodeTestRunnerOptions }).nodeTest.testFiles;
  }

  capabilities(): TestRunnerCapabilities {
    return { reloadEnvironment: true };
  }

  async init(): Promise<void> {
    const sandbox = pathToFileURL(`${process.cwd()}/`).href;
    fc.configureGlobal({ seed: 1, endOnFailure: true });
    registerHooks({
      resolve: (specifier, context, next) => {
        if (!context.parentURL?.startsWith(sandbox)) return next(specifier, context);
        if (specifier === 'node:test') return { url: COLLECTOR, shortCircuit: true };
        const resolved = next(specifier, context);
        return resolved.url.startsWith(sandbox)
          ? { ...resolved, url: `${resolved.url}?load=${this.#loads}` }
          : resolved;
      },
    });
    const stray = (error: unknown) => {
      this.#stray ??= error;
    };
    process.on('unhandledRejection', stray).on('uncaughtException', stray);
    // Here, loading counts toward no mutant's time.
    this.#tests = await this.#load();
  }

  async dryRun(_options: DryRunOptions): Promise<DryRunResult> {
    const coverage = { static: {}, perTest: {} };
    stryker.mutantCoverage = coverage;
    const tests = await this.#load();
    const results = await this.#run(tests);
    stryker.mutantCoverage = undefined;
    // A test that passes only once in a process would kill each mutant that it reaches.
    const again = await this.#run(tests);
    const failed = again.filter(({ status }) => status === TestStatus.Failed);
    const worse = results.map((each) => failed.find(({ id }) => id === each.id) ?? each);
    return { status: DryRunStatus.Complete, tests: worse, mutantCoverage: coverage };
  }

  async mutantRun(options: MutantRunOptions): Promise<MutantRunResult> {
    const { activeMutant, testFilter, hitLimit, reloadEnvironment } = options;
    // Stryker then runs the mutant in a new process.
    if (this.#isEndless) throw new Error('a test of an earlier mutant still runs');
    stryker.hitLimit = hitLimit;
    stryker.hitCount = hitLimit === undefined ? undefined : 0;
    try {
      if (!reloadEnvironment) this.#tests ??= await this.#load();
      stryker.activeMutant = activeMutant.id;
      const tests = reloadEnvironment ? await this.#load() : (this.#tests ?? []);
      const filter = testFilter && new Set(testFilter);
      const results = await this.#run(filter ? tests.filter(({ name }) => filter.has(name)) : tests);
      return toMutantRunResult(
        determineHitLimitReached(stryker.hitCount, hitLimit) ?? {
          status: DryRunStatus.Complete,
          tests: [...results],
        },
      );
    } catch (error) {
      // Only loading fails: a test file that cannot be loaded counts as a failed test.
      const failureMessage = String(error);
      return { status: MutantRunStatus.Killed, killedBy: ['loading'], failureMessage, nrOfTests: 0 };
    } finally {
      stryker.activeMutant = undefined;
      if (reloadEnvironment) this.#tests = undefined;
    }
  }

  /** Loads all tests of all files, with new modules. */
  async #load(): Promise<readonly CollectedTest[]> {
    this.#loads += 1;
    const tests: CollectedTest[] = [];
    for (const file of (await Array.fromAsync(glob([...this.#files]))).toSorted()) {
      const url = `${pathToFileURL(join(process.cwd(), file))}?load=${this.#loads}`;
      tests.push(...(await collectTests(file, () => import(url))));
    }
    return tests;
  }

  /** Runs tests one after the other; with an active mutant until the first failure. */
  async #run(tests: readonly CollectedTest[]): Promise<readonly TestResult[]> {
    const results: TestResult[] = [];
    const rank = ({ name }: CollectedTest) => this.#killers.get(name) ?? 0;
    for (const file of tests.toSorted((one, other) => rank(other) - rank(one))) {
      stryker.currentTestId = file.name;
      const startedAt = performance.now();
      let failure = await this.#failureOf(file);
      // What an earlier mutant left behind fails a test once.
      const isFinal = this.#isEndless || stryker.activeMutant === undefined;
      if (failure !== undefined && !isFinal) failure = await this.#failureOf(file);
      const timeSpentMs = performance.now() - startedAt;
      const result = { id: file.name, name: file.name, timeSpentMs };
      if (failure === undefined) {
        results.push({ ...result, status: TestStatus.Success });
        continue;
      }
      results.push({ ...result, status: TestStatus.Failed, failureMessage: String(failure) });
      if (stryker.activeMutant === undefined) continue;
      this.#killers.set(file.name, performance.now());
      break;
    }
    stryker.currentTestId = undefined;
    return results;
  }

  /** Resolves with the reason for which a test fails; `undefined`: it passes. */
  async #failureOf(test: CollectedTest): Promise<unknown> {
    this.#stray = undefined;
    const late = Promise.withResolvers<unknown>();
    const timer = setTimeout(() => {
      this.#isEndless = true;
      late.resolve(`not over after ${ENDLESS_MS} ms`);
    }, ENDLESS_MS);
    // Some tests verify that nothing keeps the process alive.
    timer.unref();
    const running = runTest(test).then(
      () => this.#stray,
      (error: unknown) => error ?? 'rejected',
    );
    return Promise.race([running, late.promise]).finally(() => clearTimeout(timer));
  }
}

/** Stryker finds the plugin and its options by these exports. */
export const strykerValidationSchema = { properties: { nodeTest: { type: 'object' } } };
export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'node-test', NodeTestRunner)];
