import { EmbeddedRateLimiter } from '#functions/local/embedded-rate-limiter.ts';
import { rateLimiterContract } from '#test/contracts/rate-limiter-contract.ts';

rateLimiterContract(
  'EmbeddedRateLimiter',
  async () => ({ open: () => new EmbeddedRateLimiter(), close: async () => undefined }),
  { shared: false },
);
