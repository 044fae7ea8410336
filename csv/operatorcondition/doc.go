// SPDX-License-Identifier: Apache-2.0

// Package operatorcondition decides about one OperatorCondition: the object in which an operator says what it must be
// spared, such as its upgrade, and an administrator overrides it.
//
// [Gather] reads an [Input], [Reconcile] turns it into an [Outcome], and [Affected] says which keys to look at again
// when an object changed. A ClusterServiceVersion and its OperatorCondition have the same name, and that is the key of
// both.
//
//	a ClusterServiceVersion             ->  its OperatorCondition, with accounts and Deployments
//	spec.serviceAccounts                ->  a Role and a RoleBinding: they may get, update and patch this object
//	spec.conditions                     ->  status.conditions, with the generation that they were seen at
//	spec.deployments                    ->  the variable OPERATOR_CONDITION_NAME in their containers
//
// spec.overrides and spec.conditions are the administrator's and the operator's: nothing here writes them. What follows
// from them, that the next version waits, package csv decides. What a deleted ClusterServiceVersion leaves, the garbage
// collector takes: each object is owned by the one that it was made for.
package operatorcondition
