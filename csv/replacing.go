// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"fmt"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// replacing waits for a later version to be Succeeded, the oldest version first.
// Without a successor it goes back, whatever comes before it: a predecessor waits
// for this one, so that neither would ever end.
func (m *machine) replacing() decision {
	first := m.line().predecessor() == nil
	followed := slices.ContainsFunc(m.line().descendants(), isLiveSucceeded)
	switch successor := m.line().successor(); {
	case followed && first:
		return move("T61'", v1alpha1.CSVPhaseDeleting, v1alpha1.CSVReasonReplaced,
			"has been replaced by a newer ClusterServiceVersion that has successfully installed.")
	case !first && (followed || successor != nil):
		return m.stay("T60")
	case successor != nil:
		return m.waitFor("T62'", wait(since(m.c().Status.LastTransitionTime, m.in.Now), 5*time.Minute))
	}
	left := orDefault(m.in.Config.ReplacementGrace, DefaultReplacementGrace) - since(m.c().Status.LastTransitionTime, m.in.Now)
	if left > 0 {
		return m.waitFor("T63'", left)
	}
	return move("T63'", v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall,
		fmt.Sprintf("replacement of %s disappeared; verifying installation again", m.c().Name))
}

func (m *machine) deleting() decision {
	d := m.stay("T70")
	d.actions = []olmcore.Action{olmcore.DeleteOf(m.c(), olmcore.Cause{
		Reason: ReasonReplaced, Message: "a newer version has been installed",
	})}
	return d
}

// notUpgradeable says why the operator that is to be replaced forbids it; empty
// when it does not. An administrator's override comes before what the operator
// itself says.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm, isOperatorUpgradeable.
func notUpgradeable(in *Input, predecessor *version) string {
	i := indexNamed(in.OperatorConditions.Items, predecessor.Namespace, predecessor.Name)
	if i < 0 {
		return ""
	}
	condition := in.OperatorConditions.Items[i]
	if o := meta.FindStatusCondition(condition.Spec.Overrides, operatorsv2.Upgradeable); o != nil {
		if o.Status == metav1.ConditionTrue {
			return ""
		}
		return "the operator is not upgradeable: " + o.Message
	}
	c := meta.FindStatusCondition(condition.Status.Conditions, operatorsv2.Upgradeable)
	switch {
	case c == nil:
		return ""
	case c.ObservedGeneration != condition.Generation:
		return fmt.Sprintf("the operatorcondition status %q=%q is outdated", c.Type, c.Status)
	case c.Status == metav1.ConditionFalse:
		return "the operator is not upgradeable: " + c.Message
	}
	return ""
}
