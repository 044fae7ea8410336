// SPDX-License-Identifier: Apache-2.0

package operatorcondition_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/fake/scenario"
)

func TestScenarios(t *testing.T) {
	require.NoError(t, scenario.RunAll("testdata/*.txt", scenario.Config{Controllers: new(olm.OLM).Controllers()}))
}
