// SPDX-License-Identifier: Apache-2.0

// Package operatorcondition reconciles one OperatorCondition. In this object an operator reports conditions that affect
// its lifecycle, for example that it must not be upgraded now. An administrator can override them.
//
// [Gather] reads an [Input], and [Reconcile] turns it into an [olmcore.Outcome]. [Affected] returns the keys to
// reconcile after a change of an object. A ClusterServiceVersion and its OperatorCondition have the same namespace and
// name, which is the key of both.
//
//	a ClusterServiceVersion             ->  its OperatorCondition, with ServiceAccounts and Deployments
//	spec.serviceAccounts                ->  a Role and a RoleBinding: they may get, update and patch this object
//	spec.conditions                     ->  status.conditions, with the observed generation
//	spec.deployments                    ->  the variable OPERATOR_CONDITION_NAME in their containers
//
// This package does not write spec.overrides, which belongs to the administrator, or spec.conditions, which belongs to
// the operator. Package csv decides how they affect an upgrade. Each object is owned by the object that it is created
// for. So the garbage collector deletes all of them with the ClusterServiceVersion.
package operatorcondition
