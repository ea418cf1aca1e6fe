/** A module that fauxqs does not export, by its path in the package; the package's version is pinned for it. */
export async function fauxqsInternals<Module>(path: string): Promise<Module> {
  return (await import(new URL(path, import.meta.resolve('fauxqs')).href)) as Module;
}
