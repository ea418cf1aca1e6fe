/** Returns an object with some of its members replaced. */
export function instead<T extends object>(whole: T, members: Partial<T>): T {
  return new Proxy(whole, {
    get: (target, name) => {
      if (name in members) return Reflect.get(members, name);
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
