// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"context"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of Plan for a namespace. The caller sets Now, and Owners if it needs them. Gather returns an
// error if a read fails, or if the Reader does not read a kind that Plan needs.
func Gather(
	ctx context.Context, r olmcore.Reader, namespace string, resolution olmcore.Resolution, config installplan.Config,
) (Input, error) {
	in := Input{
		Namespace: namespace, Resolution: resolution, Config: config,
		ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](), ConfigMaps: olmcore.Found[*corev1.ConfigMap](),
	}
	err := cmp.Or(
		all(ctx, r, &in.Subscriptions, namespace, "who owns a new InstallPlan"),
		all(ctx, r, &in.InstallPlans, namespace, "whether the InstallPlan exists"),
		all(ctx, r, &in.OperatorGroups, namespace, "as which account a new InstallPlan runs"),
	)
	unpacked := fromImages(resolution, namespace, config)
	for _, o := range resolution.Operators {
		err = cmp.Or(err, add(ctx, r, &in.ClusterServiceVersions, namespace, o.Name, "what is installed"))
		if unpacked[o.Name] {
			err = cmp.Or(err, add(ctx, r, &in.ConfigMaps, o.Catalog.Namespace, bundle.Name(o.Bundle.Image), "whether a bundle is unpacked"))
		}
	}
	if err != nil {
		return Input{}, err
	}
	return in, nil
}

// all lists the objects of a namespace. unknown describes what depends on them.
func all[T olmcore.Object](ctx context.Context, r olmcore.Reader, to *olmcore.Observed[T], namespace, unknown string) error {
	list, err := olmcore.List[T](ctx, r, namespace, nil)
	*to = olmcore.Found(list...)
	return inputs.Needed(err, unknown)
}

// add reads one object and adds it to a list that does not contain it.
func add[T olmcore.Object](ctx context.Context, r olmcore.Reader, to *olmcore.Observed[T], namespace, name, unknown string) error {
	o, err := olmcore.Get[T](ctx, r, namespace, name)
	key := olmcore.KeyOf(o)
	if key != (olmcore.Key{}) && !slices.ContainsFunc(to.Items, func(have T) bool { return olmcore.KeyOf(have) == key }) {
		to.Items = append(to.Items, o)
	}
	return inputs.Needed(err, unknown)
}
