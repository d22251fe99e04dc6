/** The same thing for a terminal: whatever a page shows or does can be done with curl and with the command line. */

export function quote(text: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A command with words that people have chosen: none of them is anything but a word to the shell. */
export function command(name: string, ...words: readonly (string | undefined)[]): string {
  return [name, ...words.filter((word) => word !== undefined).map(quote)].join(' ');
}

/** An option with what it is given, or nothing if that is nothing. */
export function option(name: string, value: string | undefined): string[] {
  return value === undefined ? [] : [name, value];
}

/** A path with those parameters that have a value, or several. */
export function withQuery(
  path: string,
  given: Readonly<Record<string, string | readonly string[] | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    for (const one of [value ?? []].flat()) query.append(name, one);
  }
  return query.size ? `${path}?${query}` : path;
}

export function curl(origin: string, withKey: boolean, path: string): string {
  const line = command('curl -sS', `${origin}${path}`);
  return withKey ? `${line} -H "Authorization: Bearer $KEY"` : line;
}

export function jobPath(jobId: string, more = ''): string {
  return `/v1/jobs/${encodeURIComponent(jobId)}${more}`;
}
