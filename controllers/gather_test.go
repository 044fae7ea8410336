// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/installplan"
	plancreate "github.com/olmcore/olm/installplan/create"
	plansweep "github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/installplan/unpack"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/component"
	"github.com/olmcore/olm/subscription/resolution"
)

// gathers are the functions that read the Inputs of the packages.
func gathers() map[string]func(context.Context, olmcore.Reader) error {
	key := types.NamespacedName{Namespace: "ns", Name: "name"}
	lookup := v1alpha1.BundleLookup{Path: "image", CatalogSourceRef: &corev1.ObjectReference{Namespace: "ns", Name: "catalog"}}
	return map[string]func(context.Context, olmcore.Reader) error{
		"catalog.Gather": func(ctx context.Context, r olmcore.Reader) error {
			_, err := catalog.Gather(ctx, r, key, catalog.Config{})
			return err
		},
		"csv.Gather": func(ctx context.Context, r olmcore.Reader) error {
			_, err := csv.Gather(ctx, r, key, csv.Config{})
			return err
		},
		"copies.Gather": func(ctx context.Context, r olmcore.Reader) error {
			_, err := copies.Gather(ctx, r, key, copies.Config{})
			return err
		},
		"copies.GatherConfig": func(ctx context.Context, r olmcore.Reader) error {
			_, err := copies.GatherConfig(ctx, r, types.NamespacedName{Name: "cluster"}, copies.Config{})
			return err
		},
		"operatorgroup.Gather": func(ctx context.Context, r olmcore.Reader) error {
			_, err := operatorgroup.Gather(ctx, r, key)
			return err
		},
		"sweep.Gather": func(ctx context.Context, r olmcore.Reader) error {
			_, err := sweep.Gather(ctx, r, cleanup.Config{}, nil)
			return err
		},
		"installplan.Gather": func(ctx context.Context, r olmcore.Reader) error {
			_, err := installplan.Gather(ctx, r, key, installplan.Config{})
			return err
		},
		"create.Gather": func(ctx context.Context, r olmcore.Reader) error {
			_, err := plancreate.Gather(ctx, r, "ns", olmcore.Resolution{}, installplan.Config{})
			return err
		},
		"installplan sweep.Gather": func(ctx context.Context, r olmcore.Reader) error {
			_, err := plansweep.Gather(ctx, r, "ns", installplan.Config{})
			return err
		},
		"unpack.Gather": func(ctx context.Context, r olmcore.Reader) error {
			_, err := unpack.Gather(ctx, r, "ns", lookup, installplan.Config{})
			return err
		},
		"subscription.Gather": func(ctx context.Context, r olmcore.Reader) error {
			_, err := subscription.Gather(ctx, r, "ns", subscription.Config{})
			return err
		},
		"subscription.GatherCatalogs": func(ctx context.Context, r olmcore.Reader) error {
			_, err := subscription.GatherCatalogs(ctx, r, "ns", "olm")
			return err
		},
		"component.Gather": func(ctx context.Context, r olmcore.Reader) error {
			_, err := component.Gather(ctx, r, "name")
			return err
		},
		"resolution.Gather": func(ctx context.Context, r olmcore.Reader) error {
			_, err := resolution.Gather(ctx, r, "ns", "olm", nil)
			return err
		},
	}
}

func TestANilReaderIsAnInputError(t *testing.T) {
	for name, gather := range gathers() {
		t.Run(name, func(t *testing.T) {
			for _, r := range []olmcore.Reader{nil, (*olmcore.Snapshot)(nil)} {
				var input *olmcore.InputError
				require.ErrorAs(t, gather(t.Context(), r), &input)
				require.Equal(t, "Reader", input.Field)
			}
		})
	}
}

// TestGatherNamesTheKindThatWasNotRead: what a Gather is about must have been read.
func TestGatherNamesTheKindThatWasNotRead(t *testing.T) {
	nothing, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	for name, gather := range gathers() {
		t.Run(name, func(t *testing.T) {
			err := gather(t.Context(), nothing)
			if err == nil {
				return // it can do without
			}
			var notRead *olmcore.NotReadError
			require.True(t, errors.As(err, &notRead), err)
			require.ErrorContains(t, err, notRead.Kind.Kind)
		})
	}
}
