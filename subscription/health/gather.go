// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// Gather reads the Input of a namespace from r:
//   - the objects that subscription.Gather reads
//   - the predecessors of the CSVs
//   - all Deployments and Pods of the namespace
//
// Deployments and Pods are incomplete if r does not read these kinds. The caller sets Now, Catalogs, HeldBack and the
// other fields that subscription.Gather does not set. Gather returns an error if a read fails.
func Gather(ctx context.Context, r olmcore.Reader, namespace string, config subscription.Config) (Input, error) {
	of, err := subscription.Gather(ctx, r, namespace, config)
	if err != nil {
		return Input{}, err
	}
	in := Input{Input: of}
	if err := in.gatherReplaced(ctx, r); err != nil {
		return Input{}, err
	}
	if in.Deployments, err = olmcore.Observe[*appsv1.Deployment](ctx, r, namespace, nil); err != nil {
		return Input{}, err
	}
	if in.Pods, err = olmcore.Observe[*corev1.Pod](ctx, r, namespace, nil); err != nil {
		return Input{}, err
	}
	return in, nil
}

// gatherReplaced reads the predecessors of the CSVs. They distinguish a failed upgrade from a failed first
// installation.
func (in *Input) gatherReplaced(ctx context.Context, r olmcore.Reader) error {
	known, replaced := map[string]bool{}, []string{}
	for _, c := range in.ClusterServiceVersions.Items {
		known[c.Name] = true
	}
	for _, c := range in.ClusterServiceVersions.Items {
		if !known[c.Spec.Replaces] {
			replaced = append(replaced, c.Spec.Replaces)
		}
	}
	found, err := olmcore.ObserveNamed[*v1alpha1.ClusterServiceVersion](ctx, r, in.Namespace, replaced...)
	in.ClusterServiceVersions.Items = slices.Concat(in.ClusterServiceVersions.Items, found.Items)
	return err
}
