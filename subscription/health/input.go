// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

// Input is the input of Of: the Input of subscription.Reconcile, plus the Deployments and Pods of the namespace. Of
// does not modify it. Lists may be in any order.
type Input struct {
	subscription.Input
	// Deployments contains all Deployments of the namespace. It is optional. If it is incomplete, Of does not examine
	// Deployments, and reports the ClusterServiceVersion instead.
	Deployments olmcore.Observed[*appsv1.Deployment]
	// Pods contains all Pods of the namespace, including those of unrelated Deployments. It is optional. If it is empty,
	// Of reports an unavailable Deployment without naming the Pod that causes the problem.
	Pods olmcore.Observed[*corev1.Pod]
	// HeldBack contains the reasons why Subscriptions do not get a newer version, as in resolution.Result. It is optional:
	// nil means that the reasons are not known.
	HeldBack []resolution.HeldBack
}

// validate returns an *olmcore.InputError for invalid fields that subscription.Assess does not check.
func (in *Input) validate() error {
	here := inputs.InNamespace(in.Namespace)
	if err := cmp.Or(inputs.ValidateList("Deployments", in.Deployments, here), inputs.ValidateList("Pods", in.Pods, here)); err != nil {
		return err
	}
	for i, h := range in.HeldBack {
		if h.Subscription == "" {
			return &olmcore.InputError{Field: fmt.Sprintf("HeldBack[%d].Subscription", i), Problem: "is empty"}
		}
	}
	return nil
}
