// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake/scenario"
	"github.com/olmcore/olm/olmcore"
)

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	commands := map[string]scenario.Command{"forbid": forbid}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			require.NoError(t, scenario.Run(file, scenario.Config{Controllers: controllers(csv.Config{}), Commands: commands}))
		})
	}
}

// forbid VERB KIND: the API server refuses such writes from now on.
func forbid(w *scenario.World, args []string, _ []byte) (string, error) {
	if len(args) != 2 {
		return "", errors.New("forbid VERB KIND")
	}
	w.Cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if string(verb) == args[0] && target.Kind == args[1] {
			return apierrors.NewForbidden(schema.GroupResource{Group: target.GVK().Group, Resource: target.Kind}, target.Name, errors.New("not you"))
		}
		return nil
	}
	return "", nil
}
