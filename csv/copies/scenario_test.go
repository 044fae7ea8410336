// SPDX-License-Identifier: Apache-2.0

package copies_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/fake/scenario"
	"github.com/olmcore/olm/olmcore/controller"
)

func TestScenarios(t *testing.T) {
	o := &olm.OLM{Options: controllers.Options{Copies: copies.Config{ProtectedNamespaces: []string{"console"}}}}
	all := slices.DeleteFunc(o.Controllers(), func(c controller.Controller) bool { return c.Name == controllers.Condition })
	require.NoError(t, scenario.RunAll("testdata/*.txt", scenario.Config{Controllers: all}))
}
