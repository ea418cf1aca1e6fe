// These tests run in one process, because loading the CDK takes longer than most of them.
import './stack/agents.ts';
import './stack/cluster-access.ts';
import './stack/config.ts';
import './stack/functions.ts';
import './stack/governed.ts';
import './stack/localstack.ts';
import './stack/monitoring.ts';
import './stack/nag.ts';
import './stack/names.ts';
import './stack/partitions.ts';
import './stack/permissions.ts';
import './stack/queues-and-table.ts';
import './stack/relay.ts';
import './stack/released.ts';
import './stack/rules.ts';
import './stack/templates.ts';
