import project from '../package.json' with { type: 'json' };

/** The release of all that is in this repository. */
export const VERSION: string = project.version;
