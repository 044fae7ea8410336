// SPDX-License-Identifier: Apache-2.0

package unpack_test

import "github.com/olmcore/olm/internal/plantest"

// What the tests of installplan and the packages below it share.
const (
	bundleImage = plantest.BundleImage
	bundleName  = plantest.BundleName
	etcdCSV     = plantest.EtcdCSV
	failed      = plantest.Failed
	installing  = plantest.Installing
	ns          = plantest.NS
)

var (
	ago          = plantest.Ago
	conditionsOf = plantest.ConditionsOf
	describe     = plantest.Describe
	filled       = plantest.Filled
	group        = plantest.Group
	images       = plantest.Images
	inOLM        = plantest.InOLM
	lookup       = plantest.Lookup
	maybe        = plantest.Maybe
	meta         = plantest.Meta
	newWorld     = plantest.NewWorld
	noon         = plantest.Noon
	normal       = plantest.Normal
	reader       = plantest.Reader
	reasons      = plantest.Reasons
	same         = plantest.Same
	shown        = plantest.Shown
	world        = plantest.World
	zipped       = plantest.Zipped
)
