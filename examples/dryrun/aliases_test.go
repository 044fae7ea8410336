// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/olmcore/olm/examples/internal/dryrun"

type (
	report = dryrun.Report
	result = dryrun.Result
)

var load = dryrun.Load

const (
	newestKubernetes = dryrun.NewestKubernetes
	notPrinted       = dryrun.NotPrinted
)
