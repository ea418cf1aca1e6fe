/** A record took too long and goes back to the queue. */
export class RecordDeadlineError extends Error {
  override readonly name = 'RecordDeadlineError';
}

/**
 * What `work` resolves to; rejects with `RecordDeadlineError` when that takes longer than `deadlineMs`. A function
 * that times out gives its whole batch back, after the visibility timeout only; one that gives a slow record up in
 * time spares the others. The work itself goes on for as long as it is let: it must be such that it can be done
 * again meanwhile.
 */
export async function withinDeadline<T>(deadlineMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new RecordDeadlineError(
      `not done within ${deadlineMs} ms; the queue brings the message back`,
    );
    timer = setTimeout(() => reject(error), deadlineMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
