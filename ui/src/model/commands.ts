/** The same thing for a terminal: whatever a page shows or does can be done with curl and with the command line. */

export function quote(text: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A command with words that people have chosen: none of them is anything but a word to the shell. */
export function command(name: string, ...words: readonly (string | undefined)[]): string {
  return [name, ...words.filter((word) => word !== undefined).map(quote)].join(' ');
}

export function curl(origin: string, withKey: boolean, method: string, path: string, body?: unknown): string {
  const parts = ['curl -sS'];
  if (method !== 'GET') parts.push(`-X ${method}`);
  parts.push(quote(`${origin}${path}`));
  if (withKey) parts.push('-H "Authorization: Bearer $KEY"');
  if (body !== undefined) parts.push(`-H 'Content-Type: application/json' -d ${quote(JSON.stringify(body))}`);
  return parts.join(' ');
}

export function jobPath(jobId: string, more = ''): string {
  return `/v1/jobs/${encodeURIComponent(jobId)}${more}`;
}
