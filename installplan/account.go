// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// accountChange says why a plan that was made under a ServiceAccount may not go
// on as now, nil for the controller. A plan that was made under none, or of
// which that is not known, may go on under any: it gets fewer rights.
//
// An account is its namespace and name, which is what permissions are bound to;
// one that was made again under its name is the same.
func accountChange(plan *v1alpha1.InstallPlan, now *corev1.ObjectReference, config Config) string {
	for _, made := range [...]string{plan.Annotations[config.accountKey()], accountName(plan.Status.AttenuatedServiceAccountRef, plan.Namespace)} {
		switch current := accountName(now, plan.Namespace); {
		case made == "" || made == current:
		case current == "":
			return fmt.Sprintf("made under service account %s, and the operator group of the namespace names none now; delete the plan to have it made anew", made)
		default:
			return fmt.Sprintf("made under service account %s, and the operator group of the namespace names %s now; delete the plan to have it made anew", made, current)
		}
	}
	return ""
}

func accountName(ref *corev1.ObjectReference, namespace string) string {
	if ref == nil || ref.Name == "" {
		return ""
	}
	return or(ref.Namespace, namespace) + "/" + ref.Name
}

// prescribedAccount returns the name of the account that plans made under the
// OperatorGroups of a namespace run as, empty for the controller and where no
// single group tells.
func prescribedAccount(groups []*operatorsv1.OperatorGroup) string {
	var all, managing []*operatorsv1.OperatorGroup
	for _, g := range groups {
		if g == nil {
			continue
		}
		if all = append(all, g); len(g.Status.Namespaces) > 0 {
			managing = append(managing, g)
		}
	}
	if len(managing) == 0 {
		managing = all // not synced yet
	}
	if len(managing) != 1 || managing[0].Spec.ServiceAccountName == "" {
		return ""
	}
	return managing[0].Namespace + "/" + managing[0].Spec.ServiceAccountName
}

// accountHash tells plans of one content apart that were made under different
// accounts.
func accountHash(content, account string) string {
	if account == "" {
		return content
	}
	sum := sha256.Sum256([]byte(content + "\n" + account))
	return hex.EncodeToString(sum[:])
}
