import { Stack, Validations } from 'aws-cdk-lib';
import {
  CfnEIP,
  GatewayVpcEndpointAwsService,
  type ISubnet,
  type IVpc,
  NatProvider,
  Peer,
  Port,
  SecurityGroup,
  Subnet,
  SubnetType,
  Vpc,
} from 'aws-cdk-lib/aws-ec2';
import { Construct } from 'constructs';
import type { Config } from './config.ts';

/** Zones of the stack's own VPC: one that fails is just what evictions are needed for. */
const ZONES = 2;
const RELAY_SUBNET = { name: 'relay', subnetType: SubnetType.PUBLIC, cidrMask: 26 } as const;
const PRIVATE_SUBNET = { name: 'private', subnetType: SubnetType.PRIVATE_WITH_EGRESS, cidrMask: 26 } as const;

/** Where the relay runs; and, unless it is public, `evict` with it. */
export class Network extends Construct {
  readonly vpc: IVpc;
  readonly subnets: ISubnet[];
  /** Whether the subnets are ours and public, so that tasks need addresses of their own. */
  readonly isPublic: boolean;
  /** The addresses by which everything leaves that calls out, where they are ours and stay; else none. */
  readonly addresses: readonly string[];
  /** Nobody calls in, everything is called: clusters may listen on any port. */
  readonly securityGroup: SecurityGroup;

  constructor(
    scope: Construct,
    id: string,
    { vpcId, subnetIds, staticEgressIps }: Pick<Config, 'vpcId' | 'subnetIds' | 'staticEgressIps'>,
  ) {
    super(scope, id);
    this.isPublic = vpcId === undefined && !staticEgressIps;
    const addresses = staticEgressIps ? this.#addresses() : [];
    this.addresses = addresses.map(({ attrPublicIp }) => attrPublicIp);
    this.vpc = vpcId === undefined ? this.#smallVpc(addresses) : this.#given(vpcId);
    const own = this.isPublic ? this.vpc.publicSubnets : this.vpc.privateSubnets;
    this.subnets = subnetIds?.map((subnetId) => Subnet.fromSubnetId(this, subnetId, subnetId)) ?? own;
    this.securityGroup = new SecurityGroup(this, 'SecurityGroup', {
      vpc: this.vpc,
      description: 'Taintward: no way in, every way out.',
      allowAllOutbound: false,
    });
    this.securityGroup.addEgressRule(Peer.anyIpv4(), Port.allTcp(), 'API servers and the AWS APIs');
    // The resolver of the VPC itself is reached whatever the rules say.
    this.securityGroup.addEgressRule(Peer.anyIpv4(), Port.udp(53), 'DNS servers of a network of yours');
  }

  /** One for the NAT gateway of each zone. */
  #addresses(): readonly CfnEIP[] {
    return Array.from(
      { length: ZONES },
      (_, index) => new CfnEIP(this, `Address${index + 1}`, { domain: 'vpc' }),
    );
  }

  /**
   * Without addresses two public subnets, no NAT: the relay has nothing to hide but its own doors, and those are shut. With them
   * two private subnets, each behind a NAT gateway of its own.
   */
  #smallVpc(addresses: readonly CfnEIP[]): IVpc {
    const isPublic = addresses.length === 0;
    const vpc = new Vpc(this, 'Vpc', {
      maxAzs: ZONES,
      natGateways: addresses.length,
      ...(isPublic
        ? {}
        : {
            natGatewayProvider: NatProvider.gateway({
              eipAllocationIds: addresses.map(({ attrAllocationId }) => attrAllocationId),
            }),
          }),
      subnetConfiguration: isPublic ? [RELAY_SUBNET] : [RELAY_SUBNET, PRIVATE_SUBNET],
      // By a function of the CDK's own, with more rights than all of ours.
      restrictDefaultSecurityGroup: false,
    });
    // Free, and not by way of NAT, which is paid for by the byte.
    vpc.addGatewayEndpoint('Table', { service: GatewayVpcEndpointAwsService.DYNAMODB });
    if (!isPublic) vpc.addGatewayEndpoint('Images', { service: GatewayVpcEndpointAwsService.S3 });
    Validations.of(vpc).acknowledge({
      id: 'AwsSolutions-VPC7',
      reason:
        'Only the relay runs here. It accepts no connections and logs its calls. A flow log would cost more than the relay.',
    });
    // The CDK is not written for exactOptionalPropertyTypes: an optional property of the interface is undefined here.
    return vpc as IVpc;
  }

  #given(vpcId: string): IVpc {
    const { availabilityZones } = Stack.of(this);
    return Vpc.fromVpcAttributes(this, 'Vpc', { vpcId, availabilityZones });
  }
}
