// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/fake/scenario"
	"github.com/olmcore/olm/olmcore"
)

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	commands := map[string]scenario.Command{"forbid": forbid, "sweep": sweepCluster}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			require.NoError(t, scenario.Run(file, scenario.Config{Controllers: controllers(csv.Config{}), Commands: commands}))
		})
	}
}

// forbid [VERB KIND...]: the API server rejects these writes, and no others, from now on.
func forbid(w *scenario.World, args []string, _ []byte) (string, error) {
	w.Cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if len(args) > 1 && string(verb) == args[0] && slices.Contains(args[1:], target.Kind) {
			return apierrors.NewForbidden(schema.GroupResource{Group: target.GVK().Group, Resource: target.Kind}, target.Name, errors.New("not you"))
		}
		return nil
	}
	return "", nil
}

// sweepCluster [delete]: prints the Diagnostics and actions of a sweep.
func sweepCluster(w *scenario.World, args []string, _ []byte) (string, error) {
	ctx := context.Background()
	in, err := sweep.Gather(ctx, w.Cluster, cleanup.Config{SweepDelete: len(args) > 0}, nil)
	if err != nil {
		return "", err
	}
	in.Now = w.Cluster.Now()
	res, err := sweep.Reconcile(in)
	if err != nil {
		return "", err
	}
	var said strings.Builder
	for _, d := range res.Diagnostics {
		fmt.Fprintf(&said, "%s %s %s: %s\n", d.Severity, d.Reason, d.Target, d.Message)
	}
	for _, a := range res.Actions {
		verb, target, _ := a.Describe()
		fmt.Fprintf(&said, "%s %s\n", verb, target)
	}
	if res.RequeueAfter > 0 {
		fmt.Fprintf(&said, "again in %s\n", res.RequeueAfter)
	}
	return said.String(), olmcore.Run(ctx, w.Cluster, res.Actions)
}
