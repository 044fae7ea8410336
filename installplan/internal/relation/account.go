// SPDX-License-Identifier: Apache-2.0

package relation

import (
	"cmp"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// Account is the annotation of a plan that records the ServiceAccount under which it was made, as namespace/name.
const Account = olmcore.KeyPrefix + "service-account"

// AccountChange says why a plan that was made under a ServiceAccount may not go on as now, nil for the controller;
// empty when it may. A plan that was made under none, or of which that is not known, may go on under any: it gets fewer
// rights.
//
// An account is its namespace and name, which is what permissions are bound to; one that was made again under its name
// is the same.
func AccountChange(plan *v1alpha1.InstallPlan, now *corev1.ObjectReference) string {
	current := accountName(now, plan.Namespace)
	for _, made := range [...]string{plan.Annotations[Account], accountName(plan.Status.AttenuatedServiceAccountRef, plan.Namespace)} {
		if made != "" && made != current {
			return fmt.Sprintf("made under service account %s, and the operator group of the namespace names %s now; delete the plan to have it made anew",
				made, cmp.Or(current, "none"))
		}
	}
	return ""
}

func accountName(ref *corev1.ObjectReference, namespace string) string {
	if ref == nil || ref.Name == "" {
		return ""
	}
	return cmp.Or(ref.Namespace, namespace) + "/" + ref.Name
}

// PrescribedAccount returns the account that plans made under the OperatorGroups of a namespace run as, as
// namespace/name; empty for the controller and where no single group tells.
func PrescribedAccount(groups []*operatorsv1.OperatorGroup) string {
	if found := managing(groups); len(found) > 0 {
		groups = found // else they are not synced yet
	}
	if len(groups) != 1 || groups[0].Spec.ServiceAccountName == "" {
		return ""
	}
	return groups[0].Namespace + "/" + groups[0].Spec.ServiceAccountName
}

// managing returns the groups that have a status.
func managing(groups []*operatorsv1.OperatorGroup) []*operatorsv1.OperatorGroup {
	return slices.DeleteFunc(slices.Clone(groups), func(g *operatorsv1.OperatorGroup) bool { return len(g.Status.Namespaces) == 0 })
}

// AccountOf returns the account that plans of a namespace run as, nil for the controller, or what is wrong. Groups
// whose status is empty do not count.
//
// Source: operator-lifecycle-manager pkg/lib/scoped, queryServiceAccountFromNamespace.
func AccountOf(groups []*operatorsv1.OperatorGroup) (account *corev1.ObjectReference, problem string) {
	found := managing(groups)
	switch len(found) {
	case 0:
		return nil, "no operator group found that is managing this namespace"
	case 1:
	default:
		return nil, fmt.Sprintf("more than one operator group(s) are managing this namespace count=%d", len(found))
	}
	account, confirmed := olmcore.AccountOf(found[0])
	if !confirmed {
		return nil, fmt.Sprintf("please make sure the service account exists. sa=%s operatorgroup=%s/%s",
			found[0].Spec.ServiceAccountName, found[0].Namespace, found[0].Name)
	}
	return account, ""
}
