// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// accountGrace is the grace period before a missing ServiceAccount of a new OperatorGroup is reported. Users often
// create both with one kubectl apply, and the cache may be stale.
const accountGrace = 10 * time.Second

// account describes the ServiceAccount that an OperatorGroup names for installations in its namespace. It is the zero
// value if the group names none.
type account struct {
	found   *corev1.ServiceAccount // nil if it was not found
	unread  bool                   // the ServiceAccounts were not read
	missing string                 // the message that it does not exist; empty if it exists or if that is not certain
	awaited time.Duration          // the rest of accountGrace, if it was not found
}

// accountOf returns the ServiceAccount that the OperatorGroup names.
func accountOf(in *Input) account {
	g := in.OperatorGroup
	if g.Spec.ServiceAccountName == "" {
		return account{}
	}
	found, exists := model.Find(in.ServiceAccounts.Items, g.Namespace, g.Spec.ServiceAccountName)
	age := in.Now.Sub(g.CreationTimestamp.Time)
	switch {
	case exists:
		return account{found: found}
	case !in.ServiceAccounts.Complete:
		return account{unread: true}
	case g.Status.ServiceAccountRef == nil && age >= 0 && age < accountGrace:
		return account{awaited: accountGrace - age}
	}
	return account{missing: "ServiceAccount " + g.Spec.ServiceAccountName + " not found"}
}

// awaitAccount requests a retry while the ServiceAccount may be missing from a stale cache, and reports if the
// ServiceAccounts were not read.
func awaitAccount(f *facts) olmcore.Result {
	if f.account.unread {
		return read.NotRead([]string{"ServiceAccounts"}, olmcore.RefOf(f.group), "spec.serviceAccountName",
			"the ServiceAccount in the status stays as it is")
	}
	return olmcore.Result{RequeueAfter: f.account.awaited}
}

// labelAccount adds the label olm.managed to the ServiceAccount, so that caches that select by this label contain it.
func labelAccount(f *facts) olmcore.Result {
	found := f.account.found
	if found == nil || found.Labels[olmcore.LabelManaged] == "true" {
		return olmcore.Result{}
	}
	after := found.DeepCopy()
	after.Labels, _ = olmcore.MergeMaps(after.Labels, map[string]string{olmcore.LabelManaged: "true"})
	return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateOf(found, after, olmcore.Cause{
		Reason: ReasonGroupChanged, Message: "OperatorGroup " + f.group.Name + " names this ServiceAccount",
	})}}
}

// reference returns the reference to the account for the status. It returns the recorded reference if that names the
// same account, because its other fields may be outdated.
func (a account) reference(have *corev1.ObjectReference) *corev1.ObjectReference {
	switch s := a.found; {
	case s == nil:
		return nil
	case have != nil && have.Kind == "ServiceAccount" && have.Namespace == s.Namespace && have.Name == s.Name && have.UID == s.UID:
		return have
	default:
		return &corev1.ObjectReference{APIVersion: "v1", Kind: "ServiceAccount", Namespace: s.Namespace, Name: s.Name, UID: s.UID}
	}
}
