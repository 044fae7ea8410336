// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// leftoverActions remove what only a former source type needed, once the present
// one serves. A registry at an address about which nothing becomes known gets no
// longer than a roll-out.
func (v *view) leftoverActions(now *condition) (actions []olmcore.Action) {
	if v.in.Config.KeepLeftovers || v.mode != modeAddress && !v.runsPods() || v.tally.outdated > 0 {
		return nil
	}
	cause := olmcore.Cause{Reason: ReasonSourceTypeChanged, Message: "no Pod of this source type needs it"}
	if v.mode == modeAddress {
		cause.Message = "the registry at spec.address serves now"
	}
	// What changed since it was judged may be of use again.
	remove := func(o olmcore.Object) {
		if owns(v.cs.UID, o.GetOwnerReferences()) && o.GetDeletionTimestamp() == nil {
			actions = append(actions, olmcore.Delete{Target: olmcore.RefOf(o), Cause: cause})
		}
	}
	if v.mode == modeAddress {
		for i := range v.pods {
			remove(v.pods[i].pod)
		}
		if o := v.service(); o != nil {
			remove(o)
		}
		for which := range v.policyAt {
			if o := v.policy(which); o != nil {
				remove(o)
			}
		}
		if o := v.budget(); o != nil {
			remove(o)
		}
		if o := v.account(); o != nil && !v.accountShared {
			remove(o)
		}
	}
	if v.otherAccountAt >= 0 {
		remove(v.in.ServiceAccounts[v.otherAccountAt])
	}
	if v.mode != modeConfigMap {
		if o := v.role(); o != nil {
			remove(o)
		}
		if o := v.roleBinding(); o != nil {
			remove(o)
		}
	}
	if len(actions) == 0 || now.status == metav1.ConditionTrue {
		return actions
	}
	recorded := meta.FindStatusCondition(v.cs.Status.Conditions, ConditionAvailable)
	if v.mode != modeAddress || recorded == nil || recorded.Status == metav1.ConditionTrue || recorded.ObservedGeneration != v.cs.Generation {
		return nil
	}
	left := v.left(recorded.LastTransitionTime.Time, v.set.progress)
	v.waitFor(left)
	if left > 0 {
		return nil
	}
	return actions
}
