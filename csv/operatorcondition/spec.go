// SPDX-License-Identifier: Apache-2.0

package operatorcondition

import (
	"slices"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/internal/ownerrefs"
	"github.com/olmcore/olm/olmcore"
)

// defaultAccount is the ServiceAccount of Pods that name none.
const defaultAccount = "default"

// isWanted reports whether there should be an OperatorCondition.
func (f *facts) isWanted() bool { return f.csv != nil && f.csv.DeletionTimestamp == nil }

// accounts returns the names of the ServiceAccounts that an operator runs as.
func accounts(c *model.CSV) (names []string) {
	strategy := &c.Spec.InstallStrategy.StrategySpec
	for _, p := range slices.Concat(strategy.ClusterPermissions, strategy.Permissions) {
		names = append(names, p.ServiceAccountName)
	}
	if names = distinct(names); len(names) == 0 {
		return []string{defaultAccount}
	}
	return names
}

func deploymentNames(c *model.CSV) (names []string) {
	for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		names = append(names, d.Name)
	}
	return distinct(names)
}

// distinct returns the names without repetitions and empty names, in the same order.
func distinct(names []string) (kept []string) {
	seen := map[string]bool{"": true}
	for _, name := range names {
		if !seen[name] {
			seen[name], kept = true, append(kept, name)
		}
	}
	return kept
}

// managed returns the label of all objects that OLM creates.
func managed() map[string]string { return map[string]string{olmcore.LabelManaged: "true"} }

// controlledBy returns an owner reference that makes o the controller.
func controlledBy(o olmcore.Object) metav1.OwnerReference {
	ref := olmcore.OwnerReferenceTo(o)
	ref.Controller = new(true)
	return ref
}

// create creates the OperatorCondition of a ClusterServiceVersion.
func create(f *facts) olmcore.Result {
	condition := &operatorsv2.OperatorCondition{
		TypeMeta: metav1.TypeMeta{APIVersion: operatorsv2.GroupVersion.String(), Kind: "OperatorCondition"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.in.Key.Namespace, Name: f.in.Key.Name, Labels: managed(),
			OwnerReferences: []metav1.OwnerReference{controlledBy(f.csv)},
		},
		Spec: operatorsv2.OperatorConditionSpec{ServiceAccounts: accounts(f.csv), Deployments: deploymentNames(f.csv)},
	}
	deployment.LabelComponents(condition, f.csv)
	return write(olmcore.CreateOf(condition, olmcore.Cause{
		Reason: ReasonCSVChanged, Message: "ClusterServiceVersion " + f.csv.Name + " has no OperatorCondition",
	}))
}

// updateSpec updates the spec of the OperatorCondition to match its ClusterServiceVersion.
func updateSpec(f *facts) olmcore.Result {
	switch {
	case !f.isWanted():
		return olmcore.Result{}
	case f.isAnothers():
		return reportConflict(f.condition,
			"it is not owned by ClusterServiceVersion %s, so its ServiceAccounts and Deployments stay as they are", f.csv.Name)
	}
	after, changed := f.followed()
	if !changed {
		return olmcore.Result{}
	}
	return write(olmcore.UpdateOf(f.condition, after, olmcore.Cause{
		Reason: ReasonCSVChanged, Message: "the OperatorCondition does not match ClusterServiceVersion " + f.csv.Name,
	}))
}

// isAnothers reports whether an object other than the ClusterServiceVersion owns the OperatorCondition. An
// OperatorCondition without an owner is not another's, because upgrades find it by its name alone.
func (f *facts) isAnothers() bool {
	controller := metav1.GetControllerOfNoCopy(f.condition)
	return controller != nil && controller.UID != f.csv.UID || model.IsOwnedByAnother(f.condition.OwnerReferences, f.csv.UID)
}

// followed returns the OperatorCondition updated to match its ClusterServiceVersion, and whether that is a change. It
// does not change overrides and conditions. A missing label olm.managed, repeated names and the order of names are no
// change: OLM leaves out the label and repeats accounts, and each write outdates the conditions of the operator.
func (f *facts) followed() (after *operatorsv2.OperatorCondition, changed bool) {
	owners, disowned := ownerrefs.Add(f.condition.OwnerReferences, []metav1.OwnerReference{controlledBy(f.csv)})
	accounts, deployments := accounts(f.csv), deploymentNames(f.csv)
	spec := &f.condition.Spec
	if !disowned && haveSameNames(spec.ServiceAccounts, accounts) && haveSameNames(spec.Deployments, deployments) {
		return nil, false
	}
	after = f.condition.DeepCopy()
	after.Labels, _ = olmcore.MergeMaps(f.condition.Labels, managed())
	after.OwnerReferences = owners
	after.Spec.ServiceAccounts, after.Spec.Deployments = accounts, deployments
	return after, true
}

// haveSameNames reports whether two lists contain the same names. Order and repetitions do not count.
func haveSameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(distinct(a))), slices.Sorted(slices.Values(distinct(b))))
}
