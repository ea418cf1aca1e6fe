import project from '../../package.json' with { type: 'json' };

export { project };

/** Where the sources are for everybody, and releases. */
export const REPOSITORY = project.repository.url.replace(/^git\+|\.git$/g, '');

/** Where the files of a release are. */
export const filesUrl = (version: string): string => `${REPOSITORY}/releases/download/v${version}`;
