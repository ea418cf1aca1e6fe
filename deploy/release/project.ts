import project from '../../package.json' with { type: 'json' };

export { project };

/** The public repository of the sources and releases. */
export const REPOSITORY = project.repository.url.replace(/^git\+|\.git$/g, '');

/** Returns the URL of the files of a release. */
export const filesUrl = (version: string): string => `${REPOSITORY}/releases/download/v${version}`;
