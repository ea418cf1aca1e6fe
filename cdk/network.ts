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

/** Zones of the stack's own VPC: the failure of a zone is the case that needs evictions most. */
const ZONES = 2;
const RELAY_SUBNET = { name: 'relay', subnetType: SubnetType.PUBLIC, cidrMask: 26 } as const;
const PRIVATE_SUBNET = { name: 'private', subnetType: SubnetType.PRIVATE_WITH_EGRESS, cidrMask: 26 } as const;

/** The network of the relay and, unless the network is public, of `evict`. */
export class Network extends Construct {
  readonly vpc: IVpc;
  readonly subnets: ISubnet[];
  /** True if the subnets are ours and public, so that tasks need addresses of their own. */
  readonly isPublic: boolean;
  /** The source addresses of all outgoing connections, if they are ours and static; otherwise empty. */
  readonly addresses: readonly string[];
  /** The security group allows no incoming connections, and outgoing ones to any port: clusters may listen on any. */
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
    // The VPC's own resolver is reachable regardless of the rules.
    this.securityGroup.addEgressRule(Peer.anyIpv4(), Port.udp(53), 'DNS servers of a network of yours');
  }

  #addresses(): readonly CfnEIP[] {
    return Array.from(
      { length: ZONES },
      (_, index) => new CfnEIP(this, `Address${index + 1}`, { domain: 'vpc' }),
    );
  }

  /**
   * Without addresses: two public subnets and no NAT, as the relay's own ports are closed. With addresses: two private
   * subnets, each behind a NAT gateway of its own.
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
      // The CDK would use a function of its own for this, with more permissions than all of ours.
      restrictDefaultSecurityGroup: false,
    });
    // Gateway endpoints are free, and avoid NAT, which is billed by the byte.
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
