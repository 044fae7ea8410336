// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// Gather reads what subscription.Gather reads, and the Deployments and Pods of the namespace; these two are incomplete
// where they were not read. What only the caller knows stays empty: Now, Catalogs, HeldBack and what subscription.Gather
// leaves out. A failed read is an error.
func Gather(ctx context.Context, r olmcore.Reader, namespace string, config subscription.Config) (Input, error) {
	of, err := subscription.Gather(ctx, r, namespace, config)
	if err != nil {
		return Input{}, err
	}
	in := Input{Input: of}
	if in.Deployments, err = olmcore.Observe[*appsv1.Deployment](ctx, r, namespace, nil); err != nil {
		return Input{}, err
	}
	if in.Pods, err = olmcore.Observe[*corev1.Pod](ctx, r, namespace, nil); err != nil {
		return Input{}, err
	}
	return in, nil
}
