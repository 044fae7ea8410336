// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

// Input is everything Of looks at: the Input of subscription.Reconcile, and what the installed versions run. Of writes
// to none of it. Lists may come in any order.
type Input struct {
	subscription.Input
	// Deployments are all Deployments of the namespace. Where they were not read a version that waits for one is itself
	// what blocks. Optional.
	Deployments olmcore.Observed[*appsv1.Deployment]
	// Pods are all Pods of the namespace, those of other Deployments included. Where they were not read a Deployment
	// that is not available is itself what blocks. Optional.
	Pods olmcore.Observed[*corev1.Pod]
	// HeldBack is why Subscriptions do not get a newer version, as resolution.Result says; nil: it was not asked.
	// Optional.
	HeldBack []resolution.HeldBack
}

// validate returns an *olmcore.InputError for what subscription.Assess does not look at.
func (in *Input) validate() error {
	here := olmcore.InNamespace(in.Namespace)
	if err := cmp.Or(olmcore.ValidateList("Deployments", in.Deployments, here), olmcore.ValidateList("Pods", in.Pods, here)); err != nil {
		return err
	}
	for i, h := range in.HeldBack {
		if h.Subscription == "" {
			return &olmcore.InputError{Field: fmt.Sprintf("HeldBack[%d].Subscription", i), Problem: "is empty"}
		}
	}
	return nil
}
